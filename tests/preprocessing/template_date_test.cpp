#include "preprocessing/template_date.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

class TemplateDate : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("tokenizer.json", "{}");
    folder_.write("config.json", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"]})");
    config_.model.path = folder_.path();
    config_.data.train = {folder_.write("a.jsonl", "{}")};
    use("{{ strftime_now('%d') }}");
  }
  void use(const std::string& text) { folder_.write("chat_template.jinja", text); }
  std::string fixed(const std::optional<std::string>& recorded = {}) {
    notes_.clear();
    return with_template_date(config_, recorded, [this](const std::string& n) { notes_.push_back(n); })
        .data.template_date;
  }
  io::TemporaryFolder folder_;
  settings::RunConfig config_;
  std::vector<std::string> notes_;
};

TEST_F(TemplateDate, IsFixedWhereTheTemplateAsksForIt) {
  const std::string date = fixed();
  EXPECT_THAT(date, testing::MatchesRegex("20..-..-.."));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], testing::HasSubstr(date + " in this run (data.template_date)"));
  use("{{ messages }}");
  EXPECT_EQ(fixed(), "auto");
  EXPECT_TRUE(notes_.empty());
  use("{{ strftime_now('%d') }}");
  config_.data.train = {folder_.write("a.txt", "x")};
  EXPECT_EQ(fixed(), "auto") << "a text is no conversation";
}

TEST_F(TemplateDate, ARunThatGoesOnKeepsItsOwn) {
  EXPECT_EQ(fixed("2024-02-29"), "2024-02-29");
  EXPECT_EQ(fixed("auto"), "auto") << "of a version that recorded none";
  config_.data.template_date = "2025-01-02";
  EXPECT_EQ(fixed("2024-02-29"), "2025-01-02") << "what is given is given";
  use("{{ messages }}");
  config_.data.template_date = "auto";
  EXPECT_EQ(fixed("2024-02-29"), "2024-02-29");
  EXPECT_EQ(recorded_date(folder_.write("run.yaml", "data: {template_date: 2024-02-29}\n")), "2024-02-29");
  EXPECT_EQ(recorded_date(folder_.path() + "/none"), "auto");
}

TEST_F(TemplateDate, IsMidnightOfThatDay) {
  settings::DataSettings data;
  EXPECT_EQ(template_now(data), std::nullopt);
  data.template_date = "1970-01-02";
  EXPECT_EQ(template_now(data), 86'400);
  data.template_date = "2024-02-29";
  EXPECT_EQ(template_now(data), 1'709'164'800);
}

}  // namespace
}  // namespace plimsoll::preprocessing
