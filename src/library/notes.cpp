#include "library/notes.h"

#include <utility>

namespace plimsoll::library {
namespace {

thread_local NoteListener* current = nullptr;

}  // namespace

NoteListener::NoteListener(std::function<void(const std::string&)> listener)
    : listener_(std::move(listener)), before_(std::exchange(current, this)) {}

NoteListener::~NoteListener() { current = before_; }

void tell_note(const std::string& text) {
  if (current != nullptr) current->listener_(text);
}

}  // namespace plimsoll::library
