#include "tokenizers/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace plimsoll::tokenizers {
namespace {

TEST(PieceTrie, WalksByCharacters) {
  PieceTrie trie;
  trie.add("a", 1);
  trie.add("ab\u4f60", 2);
  trie.add("\U0001F600", 3);
  trie.add("a", 4);
  trie.add("", 5);
  trie.seal();
  const PieceTrie::Step a = trie.step(PieceTrie::kRoot, 'a');
  EXPECT_EQ(a.id, 4) << "the later one";
  const PieceTrie::Step b = trie.step(a.node, 'b');
  EXPECT_EQ(b.id, -1);
  EXPECT_EQ(trie.step(b.node, 0x4F60).id, 2);
  EXPECT_EQ(trie.step(b.node, 0x4F60).node, PieceTrie::kNone) << "nothing goes on there";
  EXPECT_EQ(trie.step(PieceTrie::kRoot, 0x1F600).id, 3) << "beyond the table of first characters";
  EXPECT_EQ(trie.step(PieceTrie::kRoot, 'b').node, PieceTrie::kNone);
  EXPECT_EQ(trie.step(PieceTrie::kRoot, 0x10FFFF).id, -1);
  EXPECT_EQ(trie.id_of("ab\u4f60"), 2);
  EXPECT_EQ(trie.id_of("ab"), -1);
  EXPECT_EQ(trie.id_of("ab\u4f60x"), -1);
  EXPECT_EQ(trie.id_of(""), -1);
}

TEST(PieceTrie, HoldsManyPieces) {
  std::mt19937 random(1);
  std::map<std::string, int32_t> pieces;
  PieceTrie trie;
  for (int32_t id = 0; id < 20'000; ++id) {
    std::string text;
    for (size_t size = 1 + random() % 6; size > 0; --size) text += "abc\xC3\xA9"[random() % 3];
    if (random() % 2 == 0) text += "\u00e9\u4f60";
    pieces[text] = id;
    trie.add(text, id);
  }
  trie.seal();
  for (const auto& [text, id] : pieces) EXPECT_EQ(trie.id_of(text), id) << text;
}

TEST(PieceTrie, MayBeEmpty) {
  PieceTrie trie;
  trie.seal();
  EXPECT_EQ(trie.step(PieceTrie::kRoot, 0).id, -1);
  EXPECT_EQ(trie.id_of("a"), -1);
}

}  // namespace
}  // namespace plimsoll::tokenizers
