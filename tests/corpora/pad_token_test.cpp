#include "corpora/pad_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "corpora/tiny_tokenizer.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

class PadToken : public testing::Test {
 protected:
  void SetUp() override { folder_.write("tokenizer.json", tiny_tokenizer_json()); }
  [[nodiscard]] EncoderFiles files() const {
    auto files = EncoderFiles::open(folder_.path());
    EXPECT_TRUE(files) << files.error().message();
    return std::move(*files);
  }
  [[nodiscard]] static io::ConfigJson config() {
    return *io::parse_config_json(R"({"vocab_size": 264, "eos_token_id": 262})", "config.json");
  }
  const io::TemporaryFolder folder_;
};

TEST_F(PadToken, TheTokenizersOwnComesFirstThenTheOneThatEndsATextThenTheModels) {
  EXPECT_EQ(*pad_token_for(files(), config()), 261) << "<|endoftext|> by its name";
  constexpr int32_t kEnd[] = {261};
  EXPECT_EQ(*pad_token_for(files(), config(), kEnd), 262) << "rows end with the other";
  folder_.write("special_tokens_map.json", R"({"pad_token": {"content": "<|im_end|>"}})");
  EXPECT_EQ(*pad_token_for(files(), config()), 263);
  folder_.write("tokenizer_config.json", R"({"pad_token": "<|im_start|>"})");
  EXPECT_EQ(*pad_token_for(files(), config()), 262);
}

TEST_F(PadToken, OneThatTheModelDoesNotHaveIsPassedOver) {
  folder_.write("tokenizer_config.json", R"({"pad_token": "<|im_end|>"})");
  const auto small = io::parse_config_json(R"({"vocab_size": 262})", "config.json");
  EXPECT_EQ(*pad_token_for(files(), *small), 261);
}

// A file that the disk does not give is none that names no token.
TEST_F(PadToken, AFileThatCannotBeReadIsAnError) {
  const EncoderFiles opened = files();
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = folder_.path(name);
    std::filesystem::create_symlink(path, path);  // to itself: it is there, and no reader gets anywhere
    const auto token = pad_token_for(opened, config());
    ASSERT_FALSE(token) << name;
    EXPECT_EQ(token.error().code, ErrorCode::kIo);
    EXPECT_THAT(token.error().message(), testing::HasSubstr(name));
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace plimsoll::corpora
