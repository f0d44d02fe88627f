// When texts may be read as bytes: where that is asked for, where the vocabulary is one of bytes, for random
// weights; never in silence otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "preprocessing/run_data.h"

namespace plimsoll::preprocessing {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

UnaskedBytes unasked(const settings::RunConfig& config) {
  const auto tokenizer = tokenizer_path(config);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  auto result = unasked_bytes(config, tokenizer ? *tokenizer : std::string("bytes"));
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : UnaskedBytes();
}

std::string config_json(int vocab_size) {
  return R"({"model_type": "llama", "vocab_size": )" + std::to_string(vocab_size) + "}";
}

TEST(ByteTexts, PretrainedWordsAreRefused) {
  const io::TemporaryFolder folder;
  folder.write("config.json", config_json(1000));
  settings::RunConfig config;
  config.model.path = folder.path();
  config.data.train = {"a.txt"};
  const UnaskedBytes found = unasked(config);
  EXPECT_TRUE(found.refused);
  EXPECT_THAT(found.error("a.txt").message(),
              HasSubstr("the model has no tokenizer, so text would be read as bytes"));
  EXPECT_THAT(found.error("a.txt").hint, HasSubstr("data.tokenizer: bytes"));
  EXPECT_THAT(unasked_bytes_note(config), HasSubstr("a.txt: the model has no tokenizer"));
  config.data.train = {"a.npy"};
  EXPECT_THAT(unasked_bytes_note(config), IsEmpty());
  config.data.tokenizer = "bytes";
  EXPECT_THAT(unasked(config).what, IsEmpty());
}

TEST(ByteTexts, RandomWeightsAreANote) {
  const io::TemporaryFolder folder;
  folder.write("config.json", config_json(1000));
  settings::RunConfig config;
  config.model.path = folder.path();
  config.model.init = settings::FirstWeights::kRandom;
  EXPECT_FALSE(unasked(config).refused);
  EXPECT_THAT(unasked(config).what, HasSubstr("ids 0 to 255 of the model's 1,000"));
}

TEST(ByteTexts, AVocabularyOfBytesIsMeant) {
  const io::TemporaryFolder folder;
  folder.write("config.json", config_json(300));
  settings::RunConfig config;
  config.model.path = folder.path();
  EXPECT_THAT(unasked(config).what, IsEmpty());
  folder.write("spm.model", "a");  // of a tokenizer that is not read
  EXPECT_TRUE(unasked(config).refused);
  EXPECT_THAT(unasked(config).what, HasSubstr("has no tokenizer that can be read"));
  folder.write("tokenizer.json", "{}");
  EXPECT_THAT(unasked(config).what, IsEmpty()) << "its reader says what is wrong with it";
}

}  // namespace
}  // namespace plimsoll::preprocessing
