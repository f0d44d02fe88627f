#include "io/pickle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "io/unpickle.h"

namespace plimsoll::io {
namespace {

template <class F>
std::string pickled(F&& write) {
  std::string bytes;
  PickleWriter writer([&](std::span<const std::byte> part) -> Status {
    EXPECT_LE(part.size(), PickleWriter::kBufferBytes);
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    return Ok{};
  });
  write(writer);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

/// As python3 -c "import pickletools; pickletools.dis(…)" reads them.
TEST(PickleTest, WritesTheOpcodesOfTheFormat) {
  const std::string bytes = pickled([](PickleWriter& w) {
    w.begin_dict();
    w.entry("a", 1);
    w.string("b");
    w.begin_list();
    w.pair(2, 300);
    w.boolean(true);
    w.integer(int64_t{1} << 32);
    w.end();
    w.end();
  });
  const std::string expected(
      "\x80\x02}("
      "X\x01\0\0\0aK\x01"
      "X\x01\0\0\0b]("
      "K\x02J\x2c\x01\0\0\x86\x88\x8a\x08\0\0\0\0\x01\0\0\0"
      "eu.",
      42);
  EXPECT_EQ(bytes, expected);
}

TEST(PickleTest, NumbersOfAnySizeComeBack) {
  const std::vector<int64_t> numbers = {0,
                                        255,
                                        256,
                                        -1,
                                        2147483647,
                                        -2147483648,
                                        2147483648,
                                        -2147483649,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
  const std::string bytes = pickled([&](PickleWriter& w) {
    w.begin_list();
    for (const int64_t n : numbers) w.integer(n);
    w.end();
  });
  const Tree tree = Unpickler(bytes).read();
  ASSERT_EQ(tree.items.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(tree.items[i].integer, numbers[i]);
}

/// JavaScript takes what stands behind a mark as a call's arguments, of which there may not be too many.
TEST(PickleTest, LongListsGoInBatches) {
  const std::string bytes = pickled([](PickleWriter& w) {
    w.begin_list();
    for (int i = 0; i < 2500; ++i) {
      w.begin_dict();
      w.entry("text", "x");
      w.end();
    }
    w.end();
  });
  Unpickler reader(bytes);
  EXPECT_EQ(reader.read().items.size(), 2500U);
  EXPECT_EQ(reader.largest_batch(), 1000U);
}

TEST(PickleTest, TellsOfAFailedWrite) {
  PickleWriter writer([](std::span<const std::byte>) -> Status { return Error{ErrorCode::kIo, "full"}; });
  writer.integer(1);
  const Status status = writer.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "full");
}

}  // namespace
}  // namespace plimsoll::io
