// What nearly every file includes, precompiled (options.cmake). Headers of the system's alone: one of ours
// would compile everything anew with each change. Few, because reading them costs each file: a list twice as
// long saved a quarter less.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
