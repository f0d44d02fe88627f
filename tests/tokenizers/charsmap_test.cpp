// Charsmaps by hand; tests/interop/tokenizers_compare.py holds sentencepiece's on every code point against
// the package, and others made at random.
#include "tokenizers/charsmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::tokenizers {
namespace {

using testing::HasSubstr;

/// A double array with a block of 256 units for each node, and the strings behind it.
using Entries = std::map<std::string, std::string>;

struct Table {
  explicit Table(const Entries& entries) : units(512) {
    units[0] = 256u << 10;
    std::map<std::string, uint32_t> nodes = {{"", 256u}};
    for (const auto& [key, value] : entries) {
      for (size_t size = 1; size <= key.size(); ++size) {
        if (nodes.contains(key.substr(0, size))) continue;
        const auto base = static_cast<uint32_t>(units.size());
        const uint32_t at = unit_of(nodes.at(key.substr(0, size - 1)), key[size - 1]);
        units[at] = static_cast<unsigned char>(key[size - 1]) | (at ^ base) << 10;
        nodes[key.substr(0, size)] = base;
        units.resize(units.size() + 256);
      }
      units[unit_of(nodes.at(key.substr(0, key.size() - 1)), key.back())] |= 0x100;
      units[nodes.at(key)] = 1u << 31 | static_cast<uint32_t>(strings.size());
      strings += value + '\0';
    }
  }
  static uint32_t unit_of(uint32_t base, char byte) { return base ^ static_cast<unsigned char>(byte); }
  [[nodiscard]] std::string bytes() const {
    std::string out;
    const auto add = [&out](uint32_t value) {
      for (int shift = 0; shift < 32; shift += 8)
        out += static_cast<char>(static_cast<unsigned char>(value >> shift & 0xFF));
    };
    add(static_cast<uint32_t>(4 * units.size()));
    for (const uint32_t unit : units) add(unit);
    return out + strings;
  }
  std::vector<uint32_t> units;
  std::string strings;
};

const Field kField{nullptr, "normalizer.precompiled_charsmap", "t.json"};

std::string refusal(const std::string& bytes) {
  const auto read = Charsmap::parse(bytes, kField);
  return read ? "accepted" : read.error().message();
}

const Entries kEntries = {
    {"\t", " "}, {"\r", " "},  {"\x01", ""},      {"\ufb01", "fi"},           {"e\u0301", "\u00e9"},
    {"A", "a"},  {"ab", "no"}, {"o\u0308", "oe"}, {"\u1100\u1161", "\uac00"}, {"\uff76\uff9e", "\u30ac"}};

Charsmap charsmap() {
  auto read = Charsmap::parse(Table(kEntries).bytes(), kField);
  EXPECT_TRUE(read) << read.error().message();
  return *read;
}

std::string mapped(const std::string& text) {
  std::string out;
  return charsmap().apply(text, out) ? out : text;
}

// By the tokenizers package (0.23.3).
TEST(Charsmap, ReplacesClustersAndCharacters) {
  EXPECT_EQ(mapped("plain ab"), "plain ab") << "an entry of two letters is never looked up";
  EXPECT_EQ(mapped("\ufb01t\tA\x01!"), "fit a!");
  EXPECT_EQ(mapped("cafe\u0301 e"), "caf\u00e9 e");
  EXPECT_EQ(mapped("\r\na\r"), " a ") << "a cluster becomes what its first character says";
  EXPECT_EQ(mapped("A\u0301A\u0301\u0301\u0301"), "aa\u0301\u0301\u0301")
      << "marks vanish with a cluster of less than six bytes";
  EXPECT_EQ(mapped("\u1100\u1161\uff76\uff9e"), "\u1100\u1161\uff76\uff9e") << "six bytes";
}

TEST(Charsmap, TellsWhatEachCharacterWasMadeFrom) {
  const auto spans_of = [](const std::string& text) {
    std::vector<Span> spans;
    charsmap().align(text, spans);
    return spans;
  };
  EXPECT_EQ(spans_of("a\ufb01"), (std::vector<Span>{{0, 1}, {1, 4}, {1, 4}}));
  EXPECT_EQ(spans_of("xe\u0301y"), (std::vector<Span>{{0, 1}, {1, 4}, {1, 4}, {4, 5}}));
  EXPECT_EQ(spans_of("o\u0308"), (std::vector<Span>{{0, 1}, {1, 3}}));
  EXPECT_EQ(spans_of("A\x01\u00e9"), (std::vector<Span>{{0, 1}, {2, 4}, {2, 4}}));
  EXPECT_EQ(spans_of(""), std::vector<Span>());
}

TEST(Charsmap, StandsAloneWhereNothingJoins) {
  EXPECT_TRUE(charsmap().parts_before(' '));
  EXPECT_TRUE(charsmap().parts_before(0x4F60));
  EXPECT_FALSE(charsmap().parts_before('\n')) << "behind a carriage return";
  EXPECT_FALSE(charsmap().parts_before(0x301));
  auto prepending = Charsmap::parse(Table(Entries{{"\u0600", "x"}}).bytes(), kField);
  ASSERT_TRUE(prepending);
  EXPECT_FALSE(prepending->parts_before(' ')) << "U+0600 and a blank are one cluster";
}

TEST(Charsmap, RefusesWhatIsCutOff) {
  const std::string whole = Table(kEntries).bytes();
  const size_t trie_end = whole.size() - Table(kEntries).strings.size();
  for (size_t size = 0; size < trie_end; size += size < 8 ? 1 : 997)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("normalizer.precompiled_charsmap has")) << size;
  EXPECT_THAT(refusal(std::string(4, '\0')), HasSubstr("a trie of 0 bytes"));
  EXPECT_THAT(refusal(whole.substr(0, trie_end)), HasSubstr("a replacement that starts at byte"));
  EXPECT_THAT(refusal(whole + "\xff"), HasSubstr("no UTF-8"));
}

TEST(Charsmap, RefusesWhatPointsOutside) {
  Table table(Entries{{"a", "b"}});
  table.units[256 ^ 'a'] = 'a' | 0x100 | 0x1FFFFFu << 10;
  EXPECT_THAT(refusal(table.bytes()), HasSubstr("points outside"));
  table.units[0] = 0x1FFFFFu << 10 | 1u << 9;
  EXPECT_THAT(refusal(table.bytes()), HasSubstr("unit 0 points outside"));
  Table far(Entries{{"a", "b"}});
  far.units[512] = 1u << 31 | 77;
  EXPECT_THAT(refusal(far.bytes()), HasSubstr("starts at byte 77 of 2"));
  EXPECT_THAT(refusal(Table(Entries{{"a", std::string(1001, 'b')}}).bytes()),
              HasSubstr("more than 1000 bytes"));
  EXPECT_EQ(refusal(Table(Entries{{"a", std::string(1000, 'b')}}).bytes()), "accepted");
}

/// A node that is its own child: lookups end with the text.
TEST(Charsmap, LoopsEnd) {
  Table table(Entries{{"aa", "b"}});
  const uint32_t at = 256u ^ 'a';
  table.units[at] = 'a' | (at ^ 256u) << 10;
  auto read = Charsmap::parse(table.bytes(), kField);
  ASSERT_TRUE(read) << read.error().message();
  std::string out;
  EXPECT_FALSE(read->apply(std::string(100'000, 'a'), out));
}

TEST(Base64, IsStrict) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("YQ=="), "a");
  EXPECT_EQ(decode_base64("YWI="), "ab");
  EXPECT_EQ(decode_base64("YWJj"), "abc");
  EXPECT_EQ(decode_base64("//79"), "\xff\xfe\xfd");
  for (const char* broken : {"Y", "YQ", "YQ=", "YR==", "YWJ=", "Y W=", "YQ==YQ==", "====", "YWJj\n", "-_-_"})
    EXPECT_EQ(decode_base64(broken), std::nullopt) << broken;
}

}  // namespace
}  // namespace plimsoll::tokenizers
