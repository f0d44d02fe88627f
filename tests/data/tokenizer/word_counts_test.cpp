// Words counted by their bytes.
#include "data/tokenizer/word_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace plimsoll {
namespace {}  // namespace
}  // namespace plimsoll
