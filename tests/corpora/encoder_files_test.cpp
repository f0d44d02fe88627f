// The tokens with a role, as the files beside a tokenizer name them.
#include "corpora/encoder_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/tiny_tokenizer.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

class EncoderFilesTest : public testing::Test {
 protected:
  /// A byte-level tokenizer that has `mask` where one of the usual names stands otherwise.
  [[nodiscard]] EncoderFiles opened(const std::string& mask = "<|im_end|>") const {
    std::string json = tiny_tokenizer_json();
    json.replace(json.find("<|im_end|>"), 10, mask);
    folder_.write("tokenizer.json", json);
    auto files = EncoderFiles::open(folder_.path());
    EXPECT_TRUE(files) << (files ? "" : files.error().message());
    return std::move(*files);
  }
  const io::TemporaryFolder folder_;
};

TEST_F(EncoderFilesTest, TheMaskTokenIsOneOfTwoNames) {
  EXPECT_EQ(*opened("[MASK]").mask_token(), 263);
  EXPECT_EQ(*opened("<mask>").mask_token(), 263);
  const auto none = opened().mask_token();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kBadData);
  EXPECT_EQ(none.error().message(), "nothing says which token masks others: " + folder_.path());
  EXPECT_EQ(none.error().hint, "set mask_token in tokenizer_config.json, or give its id: mlm.mask_token");
}

TEST_F(EncoderFilesTest, AFileThatNamesTheMaskTokenComesFirst) {
  folder_.write("special_tokens_map.json", R"({"mask_token": {"content": "hell", "lstrip": true}})");
  EXPECT_EQ(*opened("[MASK]").mask_token(), 258) << "an object with its content";
  folder_.write("tokenizer_config.json", R"({"mask_token": "<|im_start|>", "eos_token": "he"})");
  const EncoderFiles files = opened("[MASK]");
  EXPECT_EQ(*files.mask_token(), 262);
  EXPECT_EQ(*files.end_token(), 256) << "each role has its own field";
  folder_.write("tokenizer_config.json", R"({"mask_token": null})");
  EXPECT_EQ(*files.mask_token(), 258) << "nothing is named there";
}

/// A token that the folder names beside the vocabulary is one of the tokenizer's.
TEST_F(EncoderFilesTest, AMaskTokenThatTheFilesAddIsBehindTheOthers) {
  folder_.write("tokenizer_config.json", R"({"mask_token": "<masked>"})");
  EXPECT_EQ(*opened("[MASK]").mask_token(), 264);
}

TEST_F(EncoderFilesTest, AMaskTokenThatTheTokenizerDoesNotHaveIsAnError) {
  const EncoderFiles files = opened("[MASK]");
  folder_.write("tokenizer_config.json", R"({"mask_token": "<masked>"})");
  const auto wrong = files.mask_token();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kBadData);
  EXPECT_THAT(wrong.error().message(),
              HasSubstr("mask_token is '<masked>', which the tokenizer does not have"));
  EXPECT_THAT(wrong.error().message(), HasSubstr("tokenizer_config.json"));
}

TEST_F(EncoderFilesTest, TheEndIsTheOneThatIsAskedForTheFilesOrTheUsual) {
  const EncoderFiles files = opened();
  EXPECT_EQ(*files.end_token(), kTinyEnd);
  EXPECT_EQ(*files.end_token("hell"), 258);
  const auto unknown = files.end_token("<end>");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), HasSubstr("the tokenizer has no token '<end>'"));
  EXPECT_THAT(unknown.error().hint, HasSubstr("--eos-token"));
  folder_.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_EQ(*files.end_token(), 263);
}

}  // namespace
}  // namespace plimsoll::corpora
