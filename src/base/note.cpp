#include "base/note.h"

#include <atomic>
#include <cstdio>

namespace plimsoll {
namespace {
std::atomic<bool> silent = false;
}

void note(const std::string& text) {
  if (!silent) std::fprintf(stderr, "note: %s\n", text.c_str());
}

void silence_notes() { silent = true; }

}  // namespace plimsoll
