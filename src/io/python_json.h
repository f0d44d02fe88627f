// JSON for readers that tell 1.0 from 1, as transformers' configurations do.
#pragma once

#include <string>

#include "io/tree.h"

namespace plimsoll::io {

/// As to_json, and a number that is no integer in the tree has a point or an exponent: 1.0, not 1.
std::string to_python_json(const Tree& tree);

}  // namespace plimsoll::io
