// Packs of images and the cache: a run over them has the bits of a run over the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/images/image_files.h"
#include "image_run.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Evaluations name images by the file that holds them.
std::string without_examples(const std::string& events) {
  std::string text;
  for (size_t begin = 0, end; (end = events.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = events.substr(begin, end - begin);
    text += line.substr(0, line.find("\"examples\"")) + "\n";
  }
  return text;
}

TEST(ImagePacks, TheSameBitsComeOfPacksAndTheCache) {
  const Folder folder;
  write_run(folder);
  const auto train = [&](const std::string& how) {
    return result_of(folder, folder.run("train run.yaml --json \"data.images.augment=[random_resized_crop, "
                                        "{color_jitter: {brightness: 0.4}}]\" " +
                                        how));
  };
  const Result files = train("");
  ASSERT_FALSE(files.model.empty());
  for (const char* format : {"jpeg", "u8"}) {
    for (const char* data : {"train", "eval"}) {
      const Outcome packed = folder.run(std::string("data pack --json --input ") + data + " --output " +
                                        data + ".pack --format " + format);
      ASSERT_EQ(packed.exit_code, 0) << packed.err;
      EXPECT_EQ(number(packed.out, "images"), std::string(data) == "train" ? 20 : 6);
      EXPECT_EQ(number(packed.out, "classes"), 2);
      EXPECT_EQ(number(packed.out, "output_bytes"), std::filesystem::file_size(folder.path(data) + ".pack"));
    }
    const Result from_pack = train("data.train=train.pack data.eval=eval.pack --resume never");
    EXPECT_EQ(without_examples(from_pack.events), without_examples(files.events)) << format;
    EXPECT_TRUE(from_pack.model == files.model) << format;
  }
  for (const char* cache : {"jpeg", "u8"}) {
    const Result cached = train(std::string("--resume never data.images.cache=") + cache);
    EXPECT_EQ(without_examples(cached.events), without_examples(files.events)) << cache;
    EXPECT_TRUE(cached.model == files.model) << cache;
  }
}

TEST(ImagePacks, ARunOverAPackIsResumed) {
  const Folder folder;
  write_run(folder);
  ASSERT_EQ(folder.run("data pack --input train --output train.pack --format u8").exit_code, 0);
  const Result whole = result_of(folder, folder.run("train run.yaml --json \"data.images.augment=[flip]\""));
  const std::string how = "data.train=train.pack \"data.images.augment=[flip]\" ";
  ASSERT_EQ(
      folder.run("train run.yaml --resume never training.max_steps=4 output.save_steps=4 " + how).exit_code,
      0);
  const Result rest = result_of(
      folder, folder.run("train run.yaml output.save_steps=4 data.images.cache=jpeg --json " + how));
  EXPECT_THAT(rest.events, StartsWith("{\"event\": \"step\", \"step\": 5,"));
  EXPECT_TRUE(rest.model == whole.model);
}

TEST(ImagePacks, APackLeavesOutWhatCannotBeDecoded) {
  const Folder folder;
  write_run(folder);
  std::string damaged = corpora::png_of(8, 8, 0, 200, 0);
  for (size_t i = damaged.size() - 24; i < damaged.size() - 12; ++i) damaged[i] = 'x';
  folder.write("train/red/damaged.png", damaged);
  const std::string pack = "data pack --input train --output train.pack --format u8";
  const Outcome refused = folder.run(pack);
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_THAT(refused.err, HasSubstr("train/red/damaged.png"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("train.pack")));
  const Outcome packed = folder.run(pack + " --on-error skip --json");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_EQ(number(packed.out, "images"), 20);
  EXPECT_THAT(packed.out, HasSubstr("\"skipped\": {\"damaged file\": 1}"));
  EXPECT_EQ(folder.run("train run.yaml data.train=train.pack").exit_code, 0);
}

TEST(ImagePacks, BenchDataNamesWhatBoundsTheLoader) {
  const Folder folder;
  write_run(folder);
  for (const char* cache : {"none", "u8"}) {
    const Outcome outcome = folder.run(std::string("bench data run.yaml --json --milliseconds 10 ") +
                                       "data.images.cache=" + cache);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    size_t rungs = 0;
    for (size_t at = 0; (at = outcome.out.find("\"event\": \"rung\"", at)) != std::string::npos; ++rungs) {
      const std::string rung = outcome.out.substr(at, outcome.out.find('\n', at) - at);
      at += rung.size();
      if (rung.find("prepared on the way") != std::string::npos) continue;
      EXPECT_THAT(rung, HasSubstr("\"image_seconds\": {\"reading\": "));
      if (rung.find("cold cache") == std::string::npos) {
        EXPECT_EQ(rung.find("\"bound_by\": \"disk\""), std::string::npos) << "files in memory: " << rung;
      }
    }
    EXPECT_GE(rungs, 9U);
  }
}

TEST(ImagePacks, ProfileNamesDecodingAndTheCacheRemovesIt) {
  const Folder folder;
  write_run(folder);
  // Images that take longer to decode than the model to compute.
  for (const char* name : {"train/red/large.png", "train/blue/large.png"})
    folder.write(name, corpora::png_of(1500, 1200, 200, 30, 30));
  // Seconds of a step; 0 where the verdict does not name it.
  const auto decoding_seconds = [&](const std::string& more) {
    const Outcome outcome = folder.run(
        "profile run.yaml --json --active 4 --output profile data.num_workers=1 "
        "data.prefetch_factor=1 runtime.threads=1 " +
        more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\"event\": \"verdict\""));
    const std::string key = "\"seconds\": ";
    const size_t finding = outcome.out.find("waiting for data: decoding images"),
                 at = finding == std::string::npos ? finding : outcome.out.find(key, finding);
    return at == std::string::npos ? 0.0 : std::strtod(outcome.out.c_str() + at + key.size(), nullptr);
  };
  const double files = decoding_seconds("");
  EXPECT_GT(files, 0);
  EXPECT_LT(decoding_seconds("data.images.cache=u8"), files / 4);
  ASSERT_EQ(folder.run("data pack --input train --output train.pack --format u8 --shortest 16").exit_code, 0);
  // Small images are resized still, which a fast machine's step may wait for.
  EXPECT_LT(decoding_seconds("data.train=train.pack"), files / 4);
}

}  // namespace
}  // namespace plimsoll::e2e
