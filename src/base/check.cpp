#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/host.h"

namespace plimsoll {

void fail(std::string_view what, std::source_location where) {
  const std::string text =
      "bug: " + std::string(what) + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")";
  if (host().found_bug != nullptr) host().found_bug(text);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace plimsoll
