// Templates as public models have them against what transformers renders (record.py).
#include "templates/recorded.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "templates/chat_template.h"

namespace plimsoll::templates {
namespace {

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kChatFolder / "templates"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class RecordedChat : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto chat = ChatTemplate::parse(
        io::read_all((kChatFolder / "templates" / (GetParam() + ".jinja")).string()), GetParam(),
        {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}, {.now = 1735689600});
    ASSERT_TRUE(chat) << chat.error().message();
    chat_ = std::move(chat).value();
  }

  void check_all() const {
    const io::Tree cases = recorded(GetParam());
    const io::Tree conversations = recorded("conversations");
    EXPECT_GT(cases.items.size(), 15u);
    for (const io::Tree& entry : cases.items) {
      const std::string name = entry.find("conversation")->text;
      const std::string record = io::to_json(*conversations.find(name));
      ChatText out;
      const Status status =
          chat_->render(record, entry.find("prompt")->boolean, out,
                        chat_->marks_generation() ? AssistantSpans::kFind : AssistantSpans::kSkip);
      const io::Tree& text = *entry.find("text");
      ASSERT_EQ(status.ok(), !text.is_null())
          << name << ": " << (status ? out.text : status.error().message());
      if (!status) continue;
      EXPECT_EQ(out.text, text.text) << name;
      if (!chat_->marks_generation()) continue;
      std::vector<TextSpan> spans;
      for (const io::Tree& span : entry.find("generation")->items)
        spans.push_back(
            {static_cast<size_t>(span.items[0].integer), static_cast<size_t>(span.items[1].integer)});
      EXPECT_EQ(out.assistant, spans) << name;
    }
  }

  std::unique_ptr<ChatTemplate> chat_;
};

TEST_P(RecordedChat, RendersAsTransformers) { check_all(); }

TEST_P(RecordedChat, IsTheSameFromManyThreads) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { check_all(); });
}

INSTANTIATE_TEST_SUITE_P(Templates, RecordedChat, testing::ValuesIn(template_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace plimsoll::templates
