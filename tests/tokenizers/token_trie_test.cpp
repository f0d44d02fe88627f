#include "tokenizers/token_trie.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll::tokenizers {
namespace {

TEST(TokenTrie, FindsWhatWasAdded) {
  TokenTrie trie;
  trie.add("ab", 1);
  trie.add("abc", 2);
  trie.add("\xC3\xA9", 3);
  trie.add("ab", 4);
  EXPECT_EQ(trie.id(trie.find("ab")), 4);
  EXPECT_EQ(trie.id(trie.find("abc")), 2);
  EXPECT_EQ(trie.id(trie.find("a")), -1);
  EXPECT_EQ(trie.id(trie.find("\xC3\xA9")), 3);
  EXPECT_EQ(trie.find("abd"), TokenTrie::kNone);
  EXPECT_EQ(trie.find(""), TokenTrie::kRoot);
}

TEST(TokenTrie, GrowsBeyondWhatWasExpected) {
  TokenTrie trie(4);
  for (int i = 0; i < 20000; ++i) trie.add("token " + std::to_string(i), i);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(trie.id(trie.find("token " + std::to_string(i))), i);
}

}  // namespace
}  // namespace plimsoll::tokenizers
