#include "base/host.h"

#include "base/caught.h"

namespace plimsoll {
namespace {

Host current;

}  // namespace

void set_host(const Host& host) { current = host; }

const Host& host() { return current; }

void note(const std::string& text) {
  if (current.note != nullptr) current.note(text);
}

void trim_heap() {
  if (current.trim_heap != nullptr) current.trim_heap();
}

Result<std::string> run_apart(const Work& work) {
  return current.run_apart != nullptr ? current.run_apart(work) : caught(work);
}

}  // namespace plimsoll
