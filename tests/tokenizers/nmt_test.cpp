#include "tokenizers/nmt.h"

#include <gtest/gtest.h>

namespace plimsoll::tokenizers {
namespace {

// By the tokenizers package (0.23.3).
TEST(Nmt, ControlCharactersVanishAndBlanksAreBlanks) {
  for (const uint32_t c : {0x01u, 0x08u, 0x0Bu, 0x0Eu, 0x1Fu, 0x7Fu, 0x8Fu, 0x9Fu})
    EXPECT_EQ(nmt_character(c), std::nullopt) << c;
  for (const uint32_t c :
       {0x09u, 0x0Au, 0x0Cu, 0x0Du, 0x1680u, 0x200Bu, 0x200Fu, 0x2028u, 0x2029u, 0x2581u, 0xFEFFu, 0xFFFDu})
    EXPECT_EQ(nmt_character(c), ' ') << c;
  for (const uint32_t c : {0x00u, 0x20u, 0x41u, 0x80u, 0x85u, 0xA0u, 0x2010u, 0x3000u, 0x10FFFFu})
    EXPECT_EQ(nmt_character(c), c) << c;
}

}  // namespace
}  // namespace plimsoll::tokenizers
