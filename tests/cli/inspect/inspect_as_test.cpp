// inspect --as and --formats as their user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/float_tensors.h"
#include "cli/inspect/inspect_rounding.h"
#include "cli/inspect/inspect_slices.h"
#include "cli/run_plimsoll.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::byte> bytes_of(const io::SafetensorsFile& file, const std::string& name) {
  const io::SafetensorsTensor* tensor = file.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(tensor->bytes));
  EXPECT_TRUE(file.read(*tensor, 0, bytes));
  return bytes;
}

std::vector<float> floats_of(const io::SafetensorsFile& file, const std::string& name) {
  const auto bytes = bytes_of(file, name);
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> wave(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i) * 0.37F) * static_cast<float>(i % 97);
  return x;
}

TEST(InspectAs, TellsWhatFp16DoesToEachTensor) {
  const io::TemporaryFolder folder;
  const std::string path = write_file(folder.path("in.safetensors"),
                                      {{{"a", "F32", {2, 3}}, {0, 1, -2, 1e-9F, 70000, std::nanf("")}},
                                       {{"b", "F32", {2}}, {1, 1.0001F}},
                                       {{"ids", "I32", {2}}, {1, 2}}});
  const Outcome json = run_plimsoll({"inspect", path, "--as", "fp16", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto lines = objects(json.out);
  ASSERT_EQ(lines.size(), 4U);
  const io::Tree& a = lines[0];
  EXPECT_EQ(a.find("name")->text, "a");
  EXPECT_EQ(a.find("as")->text, "fp16");
  EXPECT_EQ(a.find("zeros_before")->integer, 1);
  EXPECT_EQ(a.find("new_zeros")->integer, 1);
  EXPECT_EQ(a.find("zeros")->integer, 2);
  EXPECT_EQ(a.find("clipped")->integer, 1);
  EXPECT_EQ(a.find("nan")->integer, 1);
  EXPECT_EQ(a.find("lost")->integer, 1);
  EXPECT_EQ(a.find("min")->number, -2);
  EXPECT_EQ(a.find("max")->number, 70000);
  const io::Tree& b = lines[1];
  const double error = 1.0001F - 1.0, norm = std::sqrt(1 + double{1.0001F} * double{1.0001F});
  EXPECT_NEAR(b.find("relative_error")->number, error / norm, 1e-12);
  EXPECT_NEAR(b.find("snr_db")->number, 20 * std::log10(norm / error), 1e-9);
  EXPECT_EQ(lines[2].find("event")->text, "passed_over");
  EXPECT_EQ(lines[3].find("event")->text, "total");
  EXPECT_EQ(lines[3].find("elements")->integer, 8);
  EXPECT_EQ(lines[3].find("new_zeros")->integer, 1);

  const Outcome human = run_plimsoll({"inspect", path, "--as", "fp16"});
  EXPECT_THAT(human.out, HasSubstr("skipped, not floating point: ids I32 [2]\n"));
  EXPECT_THAT(human.out, HasSubstr("total"));
  EXPECT_THAT(human.out, HasSubstr("new zeros"));
}

TEST(InspectAs, WritesTheLayoutsOfEachScheme) {
  const io::TemporaryFolder folder;
  const std::string path =
      write_file(folder.path("in.safetensors"), {{{"w", "F32", {3, 130, 259}}, wave(3 * 130 * 259)},
                                                 {{"v", "F32", {7}}, wave(7)},
                                                 {{"s", "F32", {}}, {2.5F}},
                                                 {{"none", "F32", {0, 4}}, {}}});
  struct Row {
    const char *as, *values_dtype, *scales_dtype;
    std::vector<int64_t> values, scales;
  };
  const std::vector<int64_t> shape = {3, 130, 259};
  const Row rows[] = {{"bf16", "BF16", "", shape, {}},
                      {"fp16", "F16", "", shape, {}},
                      {"tf32", "F32", "", shape, {}},
                      {"e4m3", "U8", "F32", shape, {1}},
                      {"e5m2", "U8", "F32", shape, {1}},
                      {"fp8-block-1x128", "U8", "F32", shape, {3, 130, 3}},
                      {"fp8-block-128x128", "U8", "F32", shape, {3, 2, 3}},
                      {"mxfp8", "U8", "U8", shape, {3, 130, 9}},
                      {"nvfp4", "U8", "U8", {3, 130, 130}, {3, 130, 17}},
                      {"nf4", "U8", "F32", {3, 130, 130}, {3, 130, 5}},
                      {"int8-block256", "U8", "F32", shape, {3, 130, 2}}};
  for (const Row& row : rows) {
    const std::string out = folder.path(std::string(row.as) + ".safetensors");
    const Outcome outcome = run_plimsoll({"inspect", path, "--as", row.as, "--output", out});
    ASSERT_EQ(outcome.code, 0) << row.as << outcome.err;
    const auto file = io::SafetensorsFile::open(out);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_NE(file->find("w.values"), nullptr);
    EXPECT_EQ(file->find("w.values")->dtype, row.values_dtype) << row.as;
    EXPECT_EQ(file->find("w.values")->shape, row.values) << row.as;
    EXPECT_EQ(file->find("w.dequantized")->dtype, "F32") << row.as;
    EXPECT_EQ(file->find("w.dequantized")->shape, shape) << row.as;
    EXPECT_EQ(file->find("w.scales") != nullptr, !row.scales.empty()) << row.as;
    EXPECT_EQ(file->find("w.global_scale") != nullptr, std::string(row.as) == "nvfp4");
    EXPECT_NE(file->find("s.values"), nullptr);
    EXPECT_NE(file->find("none.values"), nullptr);
    for (const io::SafetensorsTensor& tensor : file->tensors())
      EXPECT_EQ(tensor.offset % io::safetensors_dtype_bytes(tensor.dtype), 0) << row.as << " " << tensor.name;
    if (row.scales.empty()) continue;
    EXPECT_EQ(file->find("w.scales")->dtype, row.scales_dtype) << row.as;
    EXPECT_EQ(file->find("w.scales")->shape, row.scales) << row.as;
  }
}

// A file whose rows are cut into slices gives what one call on the whole gives.
TEST(InspectAs, SlicesDoNotShow) {
  const io::TemporaryFolder folder;
  const int64_t rows = 140, cols = 3000;
  const auto x = wave(rows * cols);
  const std::string path = write_file(folder.path("in.safetensors"), {{{"w", "F32", {rows, cols}}, x}});
  for (const numerics::SchemeInfo& s : numerics::schemes()) {
    const std::string out = folder.path("out.safetensors");
    ASSERT_EQ(run_plimsoll({"inspect", path, "--as", std::string(s.name), "--output", out}).code, 0)
        << s.name;
    const auto file = io::SafetensorsFile::open(out);
    ASSERT_TRUE(file);
    const auto tensor = numerics::tensor_scale(s.scheme, numerics::largest_magnitude(x));
    std::vector<std::byte> codes(static_cast<size_t>(rows * numerics::code_row_bytes(s.scheme, cols)));
    std::vector<std::byte> scales(
        static_cast<size_t>(numerics::scale_rows(s.scheme, rows) * numerics::scale_cols(s.scheme, cols) *
                            numerics::scale_bytes(s.scheme)));
    std::vector<float> numbers(x.size());
    numerics::quantize(s.scheme, tensor, x, rows, cols, codes, scales);
    numerics::dequantize(s.scheme, tensor, codes, scales, rows, cols, numbers);
    EXPECT_EQ(bytes_of(*file, "w.values"), codes) << s.name;
    EXPECT_EQ(floats_of(*file, "w.dequantized"), numbers) << s.name;
    if (s.block_rows == 0) continue;
    EXPECT_EQ(bytes_of(*file, "w.scales"), scales) << s.name;
  }
}

TEST(InspectAs, SlicesCoverEachElementOnce) {
  const std::vector<std::vector<int64_t>> shapes = {
      {},     {5},    {1 << 19},   {300, 70000}, {1000, 3, 2}, {3, 130, 140}, {2, 1000, 1000},
      {0, 4}, {4, 0}, {7, 1, 1, 9}};
  for (const numerics::SchemeInfo& s : numerics::schemes())
    for (const auto& shape : shapes) {
      const MatrixView view = matrix_view(s.scheme, shape);
      std::vector<int64_t> covered(static_cast<size_t>(view.rows));
      const int64_t height = std::max<int64_t>(1, s.block_rows), width = std::max<int64_t>(1, s.block_cols);
      for (const Slice& slice : slices_of(s.scheme, view)) {
        EXPECT_EQ(slice.row % view.matrix_rows % height, 0);
        EXPECT_EQ(slice.col % width, 0);
        EXPECT_LE(slice.rows * slice.cols, kSliceElements) << s.name;
        EXPECT_TRUE(slice.rows <= view.matrix_rows || slice.rows % view.matrix_rows == 0);
        for (int64_t r = slice.row; r < slice.row + slice.rows; ++r)
          covered[static_cast<size_t>(r)] += slice.cols;
      }
      for (const int64_t cols : covered) EXPECT_EQ(cols, view.cols) << s.name;
    }
}

TEST(InspectAs, RefusesWhatItCannotDo) {
  const io::TemporaryFolder folder;
  const std::string path = write_file(folder.path("in.safetensors"), {{{"a", "F32", {1}}, {1}}});
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{path, "--as", "mxfp9"}, "did you mean mxfp8? the formats are bf16, fp16"},
      {{path, "--as", "bf16", "--output", path}, "name another file after --output"},
      {{path, "--output", folder.path("x")}, "--as bf16"},
      {{folder.path(), "--as", "bf16"}, "name a file in this folder"},
      {{path, "--formats"}, "--as FORMAT"},
      {{}, "plimsoll inspect --help"},
  };
  for (const auto& [words, hint] : rows) {
    std::vector<std::string> all = {"inspect"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = run_plimsoll(all);
    EXPECT_EQ(outcome.code, 2) << hint;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(hint));
  }
  EXPECT_EQ(run_plimsoll({"inspect", folder.path("absent"), "--as", "bf16"}).code, 65);
  EXPECT_EQ(run_plimsoll({"inspect", path, "--as", "bf16", "--output", folder.path("no/such")}).code, 74);
}

TEST(InspectFormats, HasEachFormatAndScheme) {
  const auto lines = objects(run_plimsoll({"inspect", "--formats", "--json"}).out);
  ASSERT_EQ(lines.size(), numerics::formats().size() + numerics::schemes().size());
  EXPECT_EQ(lines[4].find("name")->text, "e4m3");
  EXPECT_EQ(lines[4].find("max")->number, 448);
  EXPECT_EQ(lines[4].find("smallest_subnormal")->number, 0x1p-9);
  const Outcome human = run_plimsoll({"inspect", "--formats"});
  EXPECT_EQ(human.code, 0);
  for (const char* word : {"e5m2", "57344", "fp8-block-128x128", "4.5"})
    EXPECT_THAT(human.out, HasSubstr(word));
}

TEST(RoundingError, PartsAddUp) {
  const std::vector<float> x = {0, 1, -3, HUGE_VALF, 4}, y = {0, 1.5F, 0, HUGE_VALF, HUGE_VALF};
  RoundingError whole, first, second;
  whole.add(x, y);
  first.add(std::span(x).first(2), std::span(y).first(2));
  second.add(std::span(x).subspan(2), std::span(y).subspan(2));
  first.add(second);
  for (const RoundingError& e : {whole, first}) {
    EXPECT_EQ(e.elements, 5);
    EXPECT_EQ(e.infinite, 1);
    EXPECT_EQ(e.lost, 1);
    EXPECT_EQ(e.zeros_before, 1);
    EXPECT_EQ(e.new_zeros, 1);
    EXPECT_EQ(e.min, -3);
    EXPECT_EQ(e.max, 4);
    EXPECT_DOUBLE_EQ(e.relative_error(), std::sqrt(9.25 / 10));
    EXPECT_DOUBLE_EQ(e.mean_relative(), 0.75);
    EXPECT_EQ(e.relative_max, 1);
  }
}

}  // namespace
}  // namespace plimsoll::cli
