// Words counted by their bytes.
#include "tokenizer_training/word_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace plimsoll::tokenizer_training {
namespace {}  // namespace
}  // namespace plimsoll::tokenizer_training
