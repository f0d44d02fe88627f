#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace plimsoll {

void fail(std::string_view what, std::source_location where) {
  std::fprintf(stderr, "bug: %.*s (%s:%u)\n", static_cast<int>(what.size()), what.data(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::fflush(stderr);
  std::abort();
}

}  // namespace plimsoll
