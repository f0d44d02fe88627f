// Remarks of the modules (base/host.h) on their way to the call that listens to them.
#pragma once

#include <functional>
#include <string>

namespace plimsoll::library {

/// As Host::note: to the listener of the calling thread; without one nobody hears it.
void tell_note(const std::string& text);

/// Listens on this thread until it goes; listeners nest.
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
