// Ids and masks of texts, completions and conversations.
#include "corpora/example_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/tiny_tokenizer.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTemplate =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}{% endfor "
    "%}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class ExampleEncoderTest : public testing::Test {
 protected:
  EncodedExample encode(const Example& example, EncoderOptions options = {}) {
    EncodedExample out;
    const auto wrong = ExampleEncoder(*tokenizer_, template_.get(), options).encode(example, scratch_, out);
    EXPECT_FALSE(wrong) << wrong->error.message();
    return out;
  }
  BadExample refusal(const Example& example, EncoderOptions options = {}) {
    EncodedExample out;
    auto wrong = ExampleEncoder(*tokenizer_, template_.get(), options).encode(example, scratch_, out);
    EXPECT_TRUE(wrong);
    return wrong ? std::move(*wrong) : BadExample{};
  }
  std::vector<int32_t> ids(std::string_view text) {
    std::vector<int32_t> result;
    EXPECT_TRUE(tokenizer_->encode(text, false, result));
    return result;
  }
  /// The text of the tokens that are in the loss.
  std::string targets(const EncodedExample& e) {
    std::vector<int32_t> kept;
    for (size_t i = 0; i < e.ids.size(); ++i)
      if (e.in_loss.empty() || e.in_loss[i] == 1) kept.push_back(e.ids[i]);
    EXPECT_TRUE(e.in_loss.empty() || e.in_loss.size() == e.ids.size());
    return tokenizer_->decode(kept, false);
  }
  void use_template(const std::string& text = kTemplate) {
    auto chat = templates::ChatTemplate::parse(text, "chat.jinja");
    ASSERT_TRUE(chat) << chat.error().message();
    template_ = std::move(chat).value();
  }
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_ = tiny_tokenizer();
  std::unique_ptr<templates::ChatTemplate> template_;
  ExampleEncoder::Scratch scratch_;
};

Example completion(std::string prompt, std::string rest) {
  Example e;
  e.kind = ExampleKind::kCompletion;
  e.text = std::move(prompt);
  e.completion = std::move(rest);
  e.file = "a.jsonl";
  e.line = 7;
  return e;
}

Example messages(std::string record, std::string prompt_record = "") {
  Example e = completion("", "");
  e.kind = ExampleKind::kMessages;
  e.record = std::move(record);
  e.prompt_record = std::move(prompt_record);
  return e;
}

TEST_F(ExampleEncoderTest, TextIsWholeInTheLoss) {
  Example e;
  e.text = "hello w<|im_end|>";
  EXPECT_EQ(encode(e).ids, ids("hello w<|im_end|>"));
  EXPECT_THAT(encode(e).in_loss, IsEmpty());
  EXPECT_THAT(encode(e, {.loss = LossScope::kAssistant}).in_loss, IsEmpty());
  auto ended = encode(e, {.append_id = kTinyEnd});
  EXPECT_EQ(ended.ids.back(), kTinyEnd);
  EXPECT_EQ(ended.ids.size(), ids(e.text).size() + 1);
  e.continues = true;
  EXPECT_EQ(encode(e, {.append_id = kTinyEnd}).ids, ids(e.text));
  e = {};
  EXPECT_THAT(encode(e).ids, IsEmpty());
}

TEST_F(ExampleEncoderTest, CompletionsAreTargetsPromptsAreNot) {
  const EncodedExample e = encode(completion("say he", "llo w"));
  EXPECT_EQ(e.ids, ids("say hello w")) << "the ids are those of the whole";
  EXPECT_THAT(ids("hello"), ElementsAre(258, 'o')) << "a token lies across";
  EXPECT_EQ(targets(e), "hello w") << "which is a target, for the completion starts in it";
  EXPECT_EQ(targets(encode(completion("say ", "hello"))), "hello");
  EXPECT_EQ(targets(encode(completion("say ", "hello"), {.loss = LossScope::kAll})), "say hello");
  EXPECT_EQ(targets(encode(completion("say ", "hello"), {.loss = LossScope::kTrl})), "hello");
  EXPECT_EQ(targets(encode(completion("say ", "hello"), {.loss = LossScope::kAllAssistant})), "say hello");
  EXPECT_EQ(targets(encode(completion("say ", "hello"), {.append_id = kTinyEnd})), "hello<|endoftext|>");
  EXPECT_EQ(targets(encode(completion("", "hello"))), "hello");
  EXPECT_EQ(targets(encode(completion("say", ""))), "");
  EXPECT_EQ(targets(encode(completion("a\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80z"))), "\xF0\x9F\x98\x80z")
      << "characters of several tokens go together";
}

TEST_F(ExampleEncoderTest, ConversationsNeedATemplate) {
  const BadExample wrong = refusal(messages(R"({"messages": [{"role": "user", "content": "a"}]})"));
  EXPECT_EQ(wrong.reason, "chat template fails");
  EXPECT_THAT(wrong.error.message(), HasSubstr("there is no chat template: a.jsonl: line 7"));
  EncoderOptions options;
  options.template_error = Error{ErrorCode::kBadData, "broken", "dir/chat_template.jinja: line 2", "mend it"};
  EXPECT_EQ(refusal(messages("{}"), options).error.message(),
            "broken: a.jsonl: line 7: dir/chat_template.jinja: line 2");
}

constexpr const char* kChat = R"({"messages": [{"role": "user", "content": "hello"},
  {"role": "assistant", "content": "one"}, {"role": "user", "content": "w"},
  {"role": "assistant", "content": "two"}]})";
constexpr const char* kRendered =
    "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n"
    "<|im_start|>user\nw<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n";

TEST_F(ExampleEncoderTest, AssistantTurnsAreTargets) {
  use_template();
  const EncodedExample e = encode(messages(kChat));
  EXPECT_EQ(e.ids, ids(kRendered));
  EXPECT_EQ(targets(e), "one<|im_end|>\ntwo<|im_end|>\n");
  EXPECT_EQ(targets(encode(messages(kChat), {.loss = LossScope::kAssistant})),
            "one<|im_end|>\ntwo<|im_end|>\n");
  for (const LossScope scope : {LossScope::kAll, LossScope::kTrl})
    EXPECT_EQ(targets(encode(messages(kChat), {.loss = scope})), kRendered);
}

TEST_F(ExampleEncoderTest, AnEndThatTheTemplateWroteIsNotDoubled) {
  use_template();
  const int32_t end = ids("<|im_end|>").front();
  EXPECT_EQ(encode(messages(kChat), {.append_id = end}).ids, ids(kRendered)) << "a line break follows it";
  EXPECT_EQ(targets(encode(messages(kChat), {.append_id = kTinyEnd})),
            "one<|im_end|>\ntwo<|im_end|>\n<|endoftext|>");
  use_template("{% for m in messages %}{{ '<|im_end|>' + m.content }}{% endfor %}");
  EXPECT_EQ(encode(messages(kChat), {.append_id = end}).ids.back(), end) << "this one is not at the end";
  Example text;
  text.text = "a<|im_end|>\n";
  EXPECT_EQ(encode(text, {.append_id = end}).ids, ids("a<|im_end|>\n<|im_end|>"))
      << "texts say it themselves";
}

TEST_F(ExampleEncoderTest, AnEndGoesWhereTrlPutsIt) {
  const auto end_of = [&](const Example& e, AppendEnd append) {
    const EncodedExample encoded = encode(e, {.append_id = kTinyEnd, .append = append});
    EXPECT_TRUE(encoded.in_loss.empty() || encoded.in_loss.size() == encoded.ids.size());
    return !encoded.ids.empty() && encoded.ids.back() == kTinyEnd;
  };
  const auto ends = [&](const Example& e) {
    return std::array{end_of(e, AppendEnd::kAuto), end_of(e, AppendEnd::kTrl), end_of(e, AppendEnd::kAlways),
                      end_of(e, AppendEnd::kNever)};
  };
  use_template();
  Example file, line;
  file.text = line.text = "hello";
  line.line = 3;
  EXPECT_THAT(ends(completion("a", "b")), ElementsAre(true, true, true, false));
  EXPECT_THAT(ends(line), ElementsAre(false, true, true, false));
  EXPECT_THAT(ends(file), ElementsAre(false, false, true, false));
  EXPECT_THAT(ends(messages(kChat)), ElementsAre(false, false, true, false)) << "the template's business";
  EXPECT_THAT(ends(completion("", "")), ElementsAre(false, false, true, false));
  const EncodedExample once =
      encode(completion("a", "b<|endoftext|>"), {.append_id = kTinyEnd, .append = AppendEnd::kAuto});
  EXPECT_EQ(once.ids, ids("ab<|endoftext|>")) << "not doubled";
  const EncodedExample none = encode(completion("a", "b"), {.append = AppendEnd::kAuto});
  EXPECT_EQ(none.ids, ids("ab"));
  EXPECT_EQ(none.remarks.unended, 1) << "nothing says which token it would be";
  EXPECT_EQ(encode(file, {.append = AppendEnd::kAuto}).remarks.unended, 0);
}

TEST_F(ExampleEncoderTest, TokensStayAsTheyAre) {
  Example e = completion("", "");
  e.kind = ExampleKind::kTokens;
  e.ids = {104, 258, kTinyEnd};
  e.in_loss = {0, 1, 1};
  EXPECT_EQ(encode(e).ids, e.ids);
  EXPECT_EQ(encode(e).in_loss, e.in_loss);
  EXPECT_THAT(encode(e, {.loss = LossScope::kAll}).in_loss, IsEmpty());
  EXPECT_EQ(encode(e, {.append_id = kTinyEnd}).ids, e.ids) << "it ends with it";
  EXPECT_EQ(encode(e, {.append_id = kTinyEnd, .append = AppendEnd::kTrl}).ids, e.ids);
  e.ids = {264};
  EXPECT_THAT(refusal(e).error.message(),
              HasSubstr("\"input_ids\" holds 264, and the tokenizer has 264 ids"));
}

TEST_F(ExampleEncoderTest, APromptThatEndsInsideATokenIsCounted) {
  EXPECT_EQ(encode(completion("say he", "llo w")).remarks.split_prompts, 1);
  EXPECT_EQ(encode(completion("say ", "hello w")).remarks.split_prompts, 0);
  EXPECT_EQ(encode(completion("hello ", "w")).remarks.split_prompts, 1) << "the blank is the next token's";
  EXPECT_EQ(encode(completion("hello", " w")).remarks.split_prompts, 0);
  EXPECT_EQ(encode(completion("", "hello")).remarks.split_prompts, 0);
  EXPECT_EQ(encode(completion("hello", "")).remarks.split_prompts, 0);
  EXPECT_EQ(encode(completion("say he", "llo"), {.loss = LossScope::kAll}).remarks.split_prompts, 0)
      << "nothing is masked";
  EncodingRemarks remarks{.split_prompts = 2};
  remarks.add({.split_prompts = 1, .unended = 1});
  const auto lines = remark_lines(remarks);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("in 3 examples the prompt ends inside a token"));
  EXPECT_THAT(lines[1], HasSubstr("of 1 example have no end"));
  use_template("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(
      encode(
          messages(
              R"({"messages": [{"role": "user", "content": "he"}, {"role": "assistant", "content": "llo"}]})",
              R"({"messages": [{"role": "user", "content": "he"}]})"))
          .remarks.split_prompts,
      1);
}

TEST_F(ExampleEncoderTest, GenerationBlocksDecide) {
  use_template(
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }} {% else %}"
      "{% generation %}{{ m.content }}{% endgeneration %};{% endif %}{% endfor %}");
  EXPECT_EQ(targets(encode(messages(kChat))), "onetwo");
}

TEST_F(ExampleEncoderTest, MessagesSayWhetherTheyAreTrainedOn) {
  const std::string begin = R"({"messages": [{"role": "user", "content": "hello"},
    {"role": "assistant", "content": "one", )",
                    end = R"(}, {"role": "user", "content": "w"}, {"role": "assistant", "content": "two"}]})";
  const std::string marked =
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }} {% else %}"
      "{% generation %}{{ m.content }}{% endgeneration %};{% endif %}{% endfor %}";
  const std::string twice =
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }} {% else %}"
      "{% generation %}{{ m.content }}{% endgeneration %}{% generation %};{% endgeneration %}{% endif %}{% "
      "endfor %}";
  for (const char* off : {R"("train": false)", R"("weight": 0)", R"("weight": 0.0, "train": null)"}) {
    use_template();
    EXPECT_EQ(targets(encode(messages(begin + off + end))), "two<|im_end|>\n") << off;
    EXPECT_EQ(encode(messages(begin + off + end), {.loss = LossScope::kTrl}).remarks.idle_flags, 1);
    use_template(marked);
    EXPECT_EQ(targets(encode(messages(begin + off + end))), "two") << "by the number of its mark";
    use_template(twice);
    EXPECT_EQ(targets(encode(messages(begin + off + end))), "two;") << "by where the turn stands";
  }
  use_template();
  for (const char* on : {R"("train": true)", R"("weight": 1)"})
    EXPECT_EQ(targets(encode(messages(begin + on + end))), "one<|im_end|>\ntwo<|im_end|>\n");
  for (const auto& [said, what] :
       {std::pair(R"("weight": 0.5)", "messages[1]: \"weight\" is 0.5, expected 0 or 1"),
        std::pair(R"("train": "no")", "messages[1]: \"train\" is a str"),
        std::pair(R"("train": true, "weight": 0)", "contradict each other")}) {
    const BadExample wrong = refusal(messages(begin + said + end));
    EXPECT_THAT(wrong.error.what, HasSubstr(what));
    EXPECT_THAT(wrong.error.message(), HasSubstr("a.jsonl: line 7"));
  }
  const std::string user = R"({"messages": [{"role": "user", "content": "a", "train": true}]})";
  EXPECT_EQ(encode(messages(user)).remarks.other_roles, 1);
  const std::string prompt = R"({"messages": [{"role": "user", "content": "hello"}]})";
  EXPECT_EQ(targets(encode(messages(begin + R"("weight": 0)" + end, prompt))), "two<|im_end|>\n");
}

TEST_F(ExampleEncoderTest, RowsThatArePackedEndEachDocument) {
  Example e;
  e.kind = ExampleKind::kTokens;
  e.ids = {1, 2, kTinyEnd, 3};
  e.in_loss = {0, 1, 1, 1};
  e.ends = {3, 4};
  const EncodedExample plain = encode(e);
  EXPECT_THAT(plain.ends, ElementsAre(3, 4));
  EXPECT_EQ(plain.remarks.packed_rows, 1);
  const EncodedExample ended = encode(e, {.append_id = kTinyEnd, .append = AppendEnd::kAlways});
  EXPECT_THAT(ended.ids, ElementsAre(1, 2, kTinyEnd, 3, kTinyEnd));
  EXPECT_THAT(ended.in_loss, ElementsAre(0, 1, 1, 1, 1));
  EXPECT_THAT(ended.ends, ElementsAre(3, 5));
  const auto lines = remark_lines(plain.remarks);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("1 example of tokens held several documents"));
}

TEST_F(ExampleEncoderTest, OfAPromptInMessagesWhatFollowsIsTheTarget) {
  use_template();
  const std::string all =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})";
  const std::string prompt = R"({"messages": [{"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]})";
  for (const LossScope scope :
       {LossScope::kAuto, LossScope::kCompletions, LossScope::kAssistant, LossScope::kTrl})
    EXPECT_EQ(targets(encode(messages(all, prompt), {.loss = scope})), "d<|im_end|>\n");
  EXPECT_EQ(targets(encode(messages(all, prompt), {.loss = LossScope::kAllAssistant})),
            "b<|im_end|>\nd<|im_end|>\n");
  use_template("{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_THAT(refusal(messages(all, prompt)).error.what, HasSubstr("writes the prompt otherwise"));
}

TEST_F(ExampleEncoderTest, TemplateFailuresNameTheLine) {
  use_template("{{ raise_exception('no roles') }}");
  const BadExample wrong = refusal(messages(kChat));
  EXPECT_EQ(wrong.reason, "chat template fails");
  EXPECT_THAT(wrong.error.message(), HasSubstr("a.jsonl: line 7"));
  EXPECT_THAT(wrong.error.message(), HasSubstr("no roles"));
  EXPECT_THAT(refusal(messages("{\"messages\": NaN}")).error.hint, HasSubstr("--on-error skip"));
}

}  // namespace
}  // namespace plimsoll::corpora
