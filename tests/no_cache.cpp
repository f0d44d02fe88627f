// Plans must not depend on what somebody calibrated on the machine that tests, nor on what is measured at
// first use: nothing can be kept there, with ctest and without.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool has_no_cache = setenv("XDG_CACHE_HOME", "/dev/null", /*overwrite=*/1) == 0;

}  // namespace
