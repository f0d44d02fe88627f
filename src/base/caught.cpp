#include "base/caught.h"

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace plimsoll {

Error caught_error() {
  try {
    throw;
  } catch (const Bug& bug) {
    return {ErrorCode::kInternal, bug.what(), {}, "please report this"};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kIo,
            "the operating system refused memory",
            {},
            "close other programs, raise the limit (ulimit -v), or lower memory.budget"};
  } catch (const std::filesystem::filesystem_error& refused) {
    return {ErrorCode::kIo, "the operating system refused: " + refused.code().message(),
            refused.path1().string(), "check that the path is right and that its disk works"};
  } catch (const std::system_error& refused) {
    return {ErrorCode::kIo,
            "the operating system refused: " + refused.code().message(),
            {},
            "raise the limits on memory, files and processes (ulimit -a), or try again"};
  } catch (const std::exception& other) {
    return {ErrorCode::kBadData,
            std::string("unexpected value: ") + other.what(),
            {},
            "look for an unusual number or name in the run file and its data, and report this"};
  } catch (...) {
    return {ErrorCode::kBadData, "a library failed without a reason", {}, "please report this"};
  }
}

}  // namespace plimsoll
