// .npy headers as NumPy writes them, and as nobody should.
#include "io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::io {
namespace {

using testing::HasSubstr;

/// A file's start: magic, version, header length, header.
std::string npy(const std::string& header, int major = 1, int64_t claimed = -1) {
  const auto length = static_cast<uint64_t>(claimed < 0 ? static_cast<int64_t>(header.size()) : claimed);
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) out += static_cast<char>(length >> (8 * i));
  return out + header;
}

Result<NpyHeader> parse(const std::string& text, int64_t data_bytes = 1 << 20) {
  return parse_npy_header(std::as_bytes(std::span(text)), static_cast<int64_t>(text.size()) + data_bytes);
}

TEST(Npy, ReadsWhatNumpyWrites) {
  struct Row {
    std::string header;
    int major;
    NpyHeader expected;
  };
  const Row rows[] = {
      {"{'descr': '<i4', 'fortran_order': False, 'shape': (30,), }         \n",
       1,
       {.element_bytes = 4, .is_signed = true, .columns = 30}},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }\n", 2, {.element_bytes = 1, .columns = 7}},
      {"{'descr': '>u2', 'fortran_order': False, 'shape': (4, 5), }\n",
       3,
       {.element_bytes = 2, .big_endian = true, .rank = 2, .rows = 4, .columns = 5}},
      {"{'shape': (4L, 5L), \"fortran_order\": False, 'descr': '<i8'}",
       1,
       {.element_bytes = 8, .is_signed = true, .rank = 2, .rows = 4, .columns = 5}},
      {"{'descr': '<u8', 'fortran_order': False, 'shape': (0,), }", 1, {.element_bytes = 8, .columns = 0}},
  };
  for (const Row& row : rows) {
    const std::string text = npy(row.header, row.major);
    const auto header = parse(text);
    ASSERT_TRUE(header) << row.header << ": " << header.error().message();
    EXPECT_EQ(header->data_offset, static_cast<int64_t>(text.size()));
    EXPECT_EQ(header->element_bytes, row.expected.element_bytes);
    EXPECT_EQ(header->is_signed, row.expected.is_signed);
    EXPECT_EQ(header->big_endian, row.expected.big_endian);
    EXPECT_EQ(header->rank, row.expected.rank);
    EXPECT_EQ(header->rows, row.expected.rows);
    EXPECT_EQ(header->columns, row.expected.columns);
  }
}

TEST(Npy, RefusesTheRest) {
  struct Row {
    std::string text;
    const char* what;
  };
  const Row rows[] = {
      {"", "no .npy"},
      {"PK\x03\x04 an npz file", "no .npy"},
      {npy("", 9), "version 9"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", 1, 60'000), "breaks off"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", 2, 4'000'000'000), "too large"},
      {npy("garbage"), "no dictionary"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), "'<f4' are no token ids"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}"), "no token ids"},
      {npy("{'descr': '<i3', 'fortran_order': False, 'shape': (3,)}"), "no token ids"},
      {npy("{'descr': '|i4', 'fortran_order': False, 'shape': (3,)}"), "no token ids"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"), "no token ids"},
      {npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': True, 'shape': (3, 4)}"), "Fortran"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': ()}"), "0 dimensions"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 3)}"), "3 dimensions"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), "fewer than"},
      {npy("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904,)}"), "fewer than"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000,)}"), "fewer than"},
      {npy("{'descr': '<i4', 'fortran_order': False}"), "lacks"},
      {npy("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,)}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': Maybe, 'shape': (3,)}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'x': 1}"), "plain array"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x"), "follows"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)"), "does not end"},
  };
  for (const Row& row : rows) {
    const auto header = parse(row.text);
    ASSERT_FALSE(header) << row.text;
    EXPECT_EQ(header.error().code, ErrorCode::kBadData);
    EXPECT_THAT(header.error().what, HasSubstr(row.what)) << row.text;
  }
}

}  // namespace
}  // namespace plimsoll::io
