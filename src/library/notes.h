// Delivers the modules' notes (base/host.h) to the call that listens for them.
#pragma once

#include <functional>
#include <string>

namespace plimsoll::library {

/// Host::note: passes the note to the listener of the calling thread; without one the note is dropped.
void tell_note(const std::string& text);

/// Listens on this thread until its destructor; listeners nest.
class NoteListener {
 public:
  explicit NoteListener(std::function<void(const std::string&)> listener);
  ~NoteListener();
  NoteListener(const NoteListener&) = delete;
  NoteListener& operator=(const NoteListener&) = delete;

 private:
  friend void tell_note(const std::string& text);
  std::function<void(const std::string&)> listener_;
  NoteListener* before_;
};

}  // namespace plimsoll::library
