#include "base/note.h"

#include <atomic>

#include "base/terminal.h"

namespace plimsoll {
namespace {
std::atomic<bool> silent = false;
}

void note(const std::string& text) {
  if (!silent) print_message("note: " + text);
}

void silence_notes() { silent = true; }

}  // namespace plimsoll
