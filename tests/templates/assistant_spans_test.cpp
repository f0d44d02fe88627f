// Where in a text the assistant speaks.
#include <gtest/gtest.h>

#include <string>

#include "templates/chat_template.h"
#include "templates/recorded.h"

namespace plimsoll::templates {
namespace {

/// What the assistant says, by the spans, in the recorded conversation.
std::vector<std::string> said(const std::string& name, const std::string& conversation, bool prompt = false) {
  const auto chat = ChatTemplate::open((kChatFolder / "templates" / (name + ".jinja")).string());
  const auto parsed =
      ChatTemplate::parse(io::read_all((kChatFolder / "templates" / (name + ".jinja")).string()), name,
                          {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, {.now = 0});
  ChatText out;
  const io::Tree conversations = recorded("conversations");
  const Status status = (*parsed)->render(io::to_json(*conversations.find(conversation)), prompt, out);
  if (!chat || !status) return {"error: " + (chat ? status.error() : chat.error()).message()};
  std::vector<std::string> turns;
  for (const TextSpan& span : out.assistant)
    turns.push_back(out.text.substr(span.begin, span.end - span.begin));
  return turns;
}

using Turns = std::vector<std::string>;

TEST(AssistantSpans, AreWhatATurnAddsToTheConversation) {
  EXPECT_EQ(said("chatml", "turns"), (Turns{"b<|im_end|>\n", "d<|im_end|>\n"}));
  EXPECT_EQ(said("chatml", "turns", true), (Turns{"b<|im_end|>\n", "d<|im_end|>\n"}));
  EXPECT_EQ(said("llama2", "turns"), (Turns{" b </s>\n", " d </s>\n"}));
  EXPECT_EQ(said("llama3", "long"), (Turns{"one<|eot_id|>", "two<|eot_id|>", "three<|eot_id|>"}));
  EXPECT_EQ(said("mistral01", "pair"), (Turns{"Hello!</s>"}));
  EXPECT_EQ(said("zephyr", "turns"), (Turns{"b</s>\n", "d</s>\n"}));
  EXPECT_EQ(said("gemma", "turns"), (Turns{"b<end_of_turn>\n", "d<end_of_turn>\n"}));
  EXPECT_EQ(said("smollm2", "system"), (Turns{"4<|im_end|>\n"}));
  EXPECT_EQ(said("chatml", "one"), Turns{});
}

TEST(AssistantSpans, HoldCallsOfTools) {
  const std::string call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": [1, 2.5], "
      "\"\u00e9\": "
      "null}}\n</tool_call><|im_end|>\n";
  EXPECT_EQ(said("qwen25", "tools"), (Turns{call, "It is 3 \u00b0C.<|im_end|>\n"}));
  EXPECT_EQ(said("qwen3", "tools"), (Turns{call, "<think>\n\n</think>\n\nIt is 3 \u00b0C.<|im_end|>\n"}));
  EXPECT_EQ(said("deepseek", "tools").size(), 2u);
}

TEST(AssistantSpans, AreFoundWhereEarlierTurnsAreRewritten) {
  EXPECT_EQ(said("qwen3", "thinking"),
            (Turns{"6<|im_end|>\n", "<think>\nsix and one\n</think>\n\n7<|im_end|>\n"}));
  EXPECT_EQ(said("qwen3", "reasoning"),
            (Turns{"6<|im_end|>\n", "<think>\nsix and one\n</think>\n\n7<|im_end|>\n"}));
  EXPECT_EQ(said("deepseek", "reasoning"), (Turns{"6</s>", "7</s>"}));
  EXPECT_EQ(said("phi3", "turns"), (Turns{"b<|end|>\n", "d<|end|>\n"}));
  EXPECT_EQ(said("phi3", "pair"), (Turns{"Hello!<|end|>\n</s>"}));
  EXPECT_EQ(said("phi3", "pair", true), (Turns{"Hello!<|end|>\n"}));
  EXPECT_EQ(said("mistral03", "long"), (Turns{"one</s>", "two</s>", "three</s>"}));
}

TEST(AssistantSpans, AreNotGuessed) {
  const auto chat = ChatTemplate::parse(
      "{% for m in messages %}{{ m.content | upper | replace('A', '') | length }}{% endfor %}", "t");
  ChatText out;
  const std::string record =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "aba"},
      {"role": "user", "content": "c"}]})";
  const Status status = (*chat)->render(record, false, out);
  EXPECT_TRUE(status) << status.error().message();  // "0", "01", "011": what the turn adds
  EXPECT_EQ(out.assistant, (std::vector<TextSpan>{{1, 2}}));
  const std::string lost =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "ab"},
      {"role": "user", "content": "ca"}]})";
  const auto shortened = ChatTemplate::parse(
      "{{ messages | length }}{% for m in messages %}{{ m.content[:1] }}{% endfor %}", "t");
  const Status gone = (*shortened)->render(lost, false, out);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message().find("messages[1]"), std::string::npos);
  EXPECT_NE(gone.error().hint.find("{% generation %}"), std::string::npos);
  EXPECT_TRUE((*shortened)->render(lost, false, out, AssistantSpans::kSkip));
  EXPECT_EQ(out.text, "3aac");
}

}  // namespace
}  // namespace plimsoll::templates
