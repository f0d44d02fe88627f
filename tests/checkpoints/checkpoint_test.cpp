// checkpoint.json, and every way in which a checkpoint can be damaged.
#include "checkpoints/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "checkpoints/checkpoint_resume.h"
#include "io/checksum.h"
#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"

namespace plimsoll::checkpoints {
namespace {

using testing::HasSubstr;

CheckpointManifest some_manifest() {
  CheckpointManifest m;
  m.step = 12;
  m.total_steps = 100;
  m.tokens = 4096;
  m.seed = 42;
  m.position = 48;
  m.num_sequences = 7;
  m.num_data_tokens = 3600;
  m.evaluated_step = 10;
  m.skipped = 4;
  m.skipped_in_a_row = 2;
  m.data = 0x0123456789abcdef;
  m.plan = 5;
  m.isa = "avx512";
  m.files = {{"model.safetensors",
              120,
              20,
              7,
              {{"a \"quoted\"", "F32", {2, 10}, 20, 80, 1}, {"b", "F32", {5}, 100, 20, 2}}},
             {"run.yaml", 30, 30, 9}};
  return m;
}

/// The text with its own checksum made right again.
std::string sealed(std::string text) {
  const size_t digits = text.size() - 19;
  return text.replace(digits, 16, io::checksum_text(io::checksum(std::string_view(text).substr(0, digits))));
}

TEST(CheckpointText, ReadsBack) {
  const CheckpointManifest m = some_manifest();
  std::string text;
  write_checkpoint_text(m, text);
  EXPECT_EQ(sealed(text), text);
  const auto read = parse_checkpoint(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->step, 12);
  EXPECT_EQ(read->evaluated_step, 10);
  EXPECT_EQ(read->skipped, 4);
  EXPECT_EQ(read->skipped_in_a_row, 2);
  EXPECT_EQ(read->data, m.data);
  EXPECT_EQ(read->isa, "avx512");
  ASSERT_EQ(read->files.size(), 2U);
  const CheckpointFile* file = read->find_file("model.safetensors");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(file->tensors.size(), 2U);
  EXPECT_EQ(file->tensors[0].name, "a \"quoted\"");
  EXPECT_EQ(file->tensors[1].offset, 100);
  EXPECT_EQ(file->tensors[1].shape, std::vector<int64_t>{5});
  std::string again;
  write_checkpoint_text(*read, again);
  EXPECT_EQ(again, text);
}

/// The best evaluation is a version of its own, so that runs without one are read by older builds.
TEST(CheckpointText, KeepsTheBestEvaluationToTheBit) {
  CheckpointManifest m = some_manifest();
  m.best = BestState{"loss", 10, 0.1, -1, -std::numeric_limits<double>::infinity(), 3};
  std::string text;
  write_checkpoint_text(m, text);
  EXPECT_THAT(text, HasSubstr("\"version\": 4"));
  const auto read = parse_checkpoint(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->best, m.best);
  const auto future = parse_checkpoint(sealed(text.replace(text.find("\"step\": 10"), 10, "\"step\": 13")));
  ASSERT_FALSE(future);
  EXPECT_THAT(future.error().message(), HasSubstr("the best step is not done yet"));
}

TEST(CheckpointText, EveryChangedByteIsFound) {
  std::string text;
  write_checkpoint_text(some_manifest(), text);
  for (size_t at = 0; at < text.size(); ++at)
    for (const int flip : {1, 32, 255}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_FALSE(parse_checkpoint(damaged)) << "byte " << at;
    }
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parse_checkpoint(text.substr(0, size))) << size;
  EXPECT_FALSE(parse_checkpoint(text + " "));
}

TEST(CheckpointText, WhatIsWrongIsNamedEvenWithARightChecksum) {
  std::string text;
  write_checkpoint_text(some_manifest(), text);
  struct Case {
    const char* from;
    const char* to;
    const char* says;
  };
  for (const Case& c :
       {Case{"\"version\": 3", "\"version\": 0", "version is 0"}, Case{"plimsoll checkpoint", "x", "format"},
        Case{"\"step\": 12", "\"step\": -1", "step is -1"},
        Case{"\"step\": 12", "\"step\": 99999999999999999999", "JSON"},
        Case{"\"skipped\": 4", "\"skipped\": 13", "more steps were skipped"},
        Case{"\"skipped_in_a_row\": 2", "\"skipped_in_a_row\": 9223372036854775807",
             "more steps were skipped"},
        Case{"\"bytes\": 80", "\"bytes\": 9223372036854775807", "after its file"},
        Case{"\"bytes\": 80", "\"bytes\": 79", "cover"}, Case{"\"bytes\": 80", "\"bytes\": -80", "bytes is"},
        Case{"\"header_bytes\": 20", "\"header_bytes\": 200", "after its file"},
        Case{"[2, 10]", "[2, -10]", "shape"}, Case{"[2, 10]", "[1,1,1,1,1,1,1,1,1]", "shape"},
        Case{"run.yaml", "../run.yaml", "name"}, Case{"run.yaml", "", "name"},
        Case{"run.yaml", "model.safetensors", "twice"}, Case{"\"seed\"", "\"sede\"", "seed"},
        Case{"\"isa\": \"avx512\"", "\"isa\": 5", "JSON"}}) {
    std::string changed = text;
    changed.replace(changed.find(c.from), std::string_view(c.from).size(), c.to);
    const auto read = parse_checkpoint(sealed(changed));
    ASSERT_FALSE(read) << c.to;
    EXPECT_EQ(read.error().code, ErrorCode::kBadData);
    const std::string says = std::string_view(c.says) == "JSON" ? "" : c.says;  // the reader's own words
    EXPECT_THAT(read.error().message(), HasSubstr(says));
  }
}

/// What another build wrote is not damaged: nothing older is taken in its stead.
TEST(CheckpointText, OfAnotherVersionIsNoDamage) {
  std::string text;
  write_checkpoint_text(some_manifest(), text);
  const io::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("checkpoint-9"));
  std::filesystem::create_directories(folder.path("checkpoint-12"));
  for (const char* version : {"\"version\": 2", "\"version\": 5"}) {
    std::string changed = text;
    changed.replace(changed.find("\"version\": 3"), 12, version);
    folder.write("checkpoint-12/checkpoint.json", sealed(changed));
    folder.write("checkpoint-9/checkpoint.json", text);
    const auto choice = choose_checkpoints("auto", folder.path());
    ASSERT_EQ(choice->candidates.size(), 2U);
    size_t from = 0;
    const auto opened = open_first_intact(*choice, from, [](const std::string& note) { FAIL() << note; });
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(opened.error().message(), HasSubstr("checkpoint-12/checkpoint.json"));
    EXPECT_THAT(opened.error().message(), HasSubstr("this build reads 3"));
  }
}

/// A small checkpoint on the disk: two tensors, a text, the manifest.
class Damage : public testing::Test {
 protected:
  Damage() {
    std::filesystem::create_directories(folder_.path("checkpoint-12"));
    manifest_ = some_manifest();
    const auto layout = io::SafetensorsLayout::create({{"a", "F32", {4, 300}}, {"b", "F32", {5}}});
    std::string payload(4820, '\0');
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 11);
    const std::string text = "training: {}\n";
    const std::string_view a = std::string_view(payload).substr(0, 4800),
                           b = std::string_view(payload).substr(4800);
    manifest_.files = {{"model.safetensors",
                        layout->file_bytes(),
                        layout->header_bytes(),
                        io::checksum(layout->header),
                        {{"a", "F32", {4, 300}, layout->header_bytes(), 4800, io::checksum(a)},
                         {"b", "F32", {5}, layout->header_bytes() + 4800, 20, io::checksum(b)}}},
                       {"run.yaml", static_cast<int64_t>(text.size()), static_cast<int64_t>(text.size()),
                        io::checksum(text)}};
    folder_.write("checkpoint-12/model.safetensors", layout->header + payload);
    folder_.write("checkpoint-12/run.yaml", text);
    std::string json;
    write_checkpoint_text(manifest_, json);
    folder_.write("checkpoint-12/checkpoint.json", json);
  }
  /// What opening and reading everything says.
  [[nodiscard]] Status look(int num_threads = 1) const {
    auto opened = open_checkpoint(folder_.path("checkpoint-12"));
    if (!opened) return std::move(opened).error();
    return verify_checkpoint(*opened, num_threads);
  }
  /// One byte in place: replacing the file each time would wait for the disk each time.
  void put(const std::string& name, size_t at, char byte) const {
    std::fstream file(folder_.path(name), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
  io::TemporaryFolder folder_;
  CheckpointManifest manifest_;
};

TEST(CheckpointText, NamesEachTensorOnce) {
  CheckpointManifest m = some_manifest();
  m.files[0].tensors[1].name = m.files[0].tensors[0].name;
  std::string text;
  write_checkpoint_text(m, text);
  const auto read = parse_checkpoint(text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kBadData);
  EXPECT_THAT(read.error().message(), HasSubstr("is listed twice"));
}

TEST_F(Damage, IsNotSeenWhereThereIsNone) {
  for (const int threads : {1, 2, 5}) {
    const Status status = look(threads);
    EXPECT_TRUE(status) << status.error().message();
  }
}

TEST_F(Damage, OfAnyByteOfAnyFileIsFoundAndNamed) {
  for (const char* name : {"model.safetensors", "run.yaml", "checkpoint.json"}) {
    const std::string path = std::string("checkpoint-12/") + name, whole = io::read_all(folder_.path(path));
    for (size_t at = 0;
         at<whole.size(); at += whole.size()> 2000 && at > 500 && at + 50 < whole.size() ? 7 : 1) {
      put(path, at, static_cast<char>(whole[at] ^ 0x10));
      const Status status = look();
      put(path, at, whole[at]);
      ASSERT_FALSE(status) << name << " byte " << at;
      EXPECT_EQ(status.error().code, ErrorCode::kBadData);
      EXPECT_THAT(status.error().where, HasSubstr(name));
    }
    for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{0}}) {
      folder_.write(path, whole.substr(0, size));
      EXPECT_FALSE(look()) << name << " cut to " << size;
    }
    folder_.write(path, whole + "x");
    EXPECT_FALSE(look()) << name << " with a byte more";
    std::filesystem::remove(folder_.path(path));
    const Status gone = look();
    ASSERT_FALSE(gone);
    EXPECT_THAT(gone.error().message(), HasSubstr(name));
    folder_.write(path, whole);
  }
  EXPECT_TRUE(look());
}

TEST_F(Damage, OfATensorIsNamed) {
  std::string whole = io::read_all(folder_.path("checkpoint-12/model.safetensors"));
  whole.back() = static_cast<char>(whole.back() ^ 1);
  folder_.write("checkpoint-12/model.safetensors", whole);
  for (const int threads : {1, 2}) EXPECT_THAT(look(threads).error().what, HasSubstr("of b is wrong"));
}

TEST_F(Damage, ReadsTensorsToTheirPlaces) {
  const auto opened = open_checkpoint(folder_.path("checkpoint-12"));
  ASSERT_TRUE(opened);
  std::vector<std::byte> a(4800);
  const TakeTensorPiece take = [&](const CheckpointTensor& t, int64_t at,
                                   std::span<const std::byte> piece) -> Status {
    if (t.name == "a") std::ranges::copy(piece, a.begin() + at);
    return Ok{};
  };
  ASSERT_TRUE(read_checkpoint_tensors(*opened, opened->manifest.files[0], take, 2));
  EXPECT_EQ(io::checksum(a), opened->manifest.files[0].tensors[0].checksum);
  // One without bytes has nothing that could be taken.
  CheckpointFile file = opened->manifest.files[0];
  file.tensors.push_back({"none", "F32", {0}, file.bytes, 0, io::checksum("")});
  EXPECT_TRUE(read_checkpoint_tensors(*opened, file, take, 2));
}

TEST(FindCheckpoints, KnowsItsOwnNewestFirst) {
  const io::TemporaryFolder folder;
  for (const char* name : {"checkpoint-9", "checkpoint-10", "checkpoint-007", "checkpoint-x", "checkpoint-",
                           "other-3", "checkpoint-500", "checkpoint--1", ".checkpoint-11.tmp"}) {
    std::filesystem::create_directories(folder.path(name));
    folder.write(
        std::string(name) + (std::string_view(name) == "checkpoint-500" ? "/optimizer.pt" : "/run.yaml"), "");
  }
  const auto found = find_checkpoints(folder.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].step, 10);
  EXPECT_EQ(found[1].path, folder.path("checkpoint-9"));
  EXPECT_TRUE(find_checkpoints(folder.path("none")).empty());
  EXPECT_TRUE(list_checkpoints(folder.path("none"))->empty());
  ASSERT_EQ(::symlink("round", folder.path("round").c_str()), 0);
  const auto unknown = list_checkpoints(folder.path("round"));
  ASSERT_FALSE(unknown) << "a folder that cannot be read is not one without checkpoints";
  EXPECT_EQ(unknown.error().code, ErrorCode::kIo);
  EXPECT_TRUE(find_checkpoints(folder.path("round")).empty());
}

}  // namespace
}  // namespace plimsoll::checkpoints
