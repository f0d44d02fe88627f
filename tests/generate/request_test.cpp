// What a request and the model's files make together: sampling, ends of sequences, prompts.
#include "generate/request.h"

#include <gtest/gtest.h>

#include "generate/prompts.h"
#include "io/temporary_folder.h"

namespace plimsoll::generate {
namespace {

io::ConfigJson json(const std::string& text) {
  return *io::parse_config_json(text, "generation_config.json");
}

Resolved resolved(const Request& request, const std::string& generation, const std::string& config = "{}") {
  auto result = resolve(request, json(generation), json(config), 300);
  EXPECT_TRUE(result.ok()) << (result ? "" : result.error().message());
  return std::move(*result);
}

TEST(Resolve, IsGreedyUnlessTheModelOrAFlagSays) {
  EXPECT_EQ(resolved({}, "{}").sampling.temperature, 0);
  EXPECT_EQ(resolved({}, R"({"temperature": 0.6, "top_p": 0.9})").sampling.temperature, 0);
  const Resolved samples =
      resolved({}, R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20})");
  EXPECT_EQ(samples.sampling.temperature, 0.6);
  EXPECT_EQ(samples.sampling.top_p, 0.9);
  EXPECT_EQ(samples.sampling.top_k, 20);
  // As transformers where the file does not say.
  EXPECT_EQ(resolved({}, R"({"do_sample": true})").sampling.top_k, 50);
  EXPECT_EQ(resolved({}, R"({"do_sample": false})").sampling.top_k, 0);
  EXPECT_EQ(resolved({.temperature = 0}, R"({"do_sample": true})").sampling.temperature, 0);
  EXPECT_EQ(resolved({}, R"({"do_sample": true})").sampling.temperature, 1);
  EXPECT_EQ(resolved({.top_p = 0.5}, "{}").sampling.temperature, 1);
  EXPECT_EQ(resolved({.min_p = 0.1}, "{}").sampling.temperature, 1);
  EXPECT_EQ(resolved({}, R"({"do_sample": true, "min_p": 0.2})").sampling.min_p, 0.2);
  EXPECT_EQ(resolved({.top_k = 5}, R"({"temperature": 0.7})").sampling.temperature, 0.7);
  EXPECT_EQ(resolved({.temperature = 2}, R"({"do_sample": true, "temperature": 0.6})").sampling.temperature,
            2);
}

TEST(Resolve, ReadsEndsOfSequencesFromEitherFile) {
  EXPECT_EQ(resolved({}, R"({"eos_token_id": [7, 9]})", R"({"eos_token_id": 2})").eos_ids,
            (std::vector<int32_t>{7, 9}));
  EXPECT_EQ(resolved({}, "{}", R"({"eos_token_id": 2})").eos_ids, std::vector<int32_t>{2});
  EXPECT_TRUE(resolved({.ignore_eos = true}, "{}", R"({"eos_token_id": 2})").eos_ids.empty());
  EXPECT_TRUE(resolved({}, "{}", R"({"eos_token_id": 50256})").eos_ids.empty());  // beyond the vocabulary
  EXPECT_EQ(resolved({}, "{}", R"({"bos_token_id": 1})").bos_id, 1);
}

TEST(Resolve, TakesTheNumberOfTokensFromFlagThenFile) {
  EXPECT_EQ(resolved({}, "{}").max_new_tokens, 128);
  EXPECT_FALSE(resolved({}, "{}").max_new_tokens_given);
  EXPECT_EQ(resolved({}, R"({"max_new_tokens": 9})").max_new_tokens, 9);
  EXPECT_EQ(resolved({.chat = true}, "{}").max_new_tokens, 512);
  EXPECT_EQ(resolved({.prompts = {"a"}, .chat = true}, "{}").max_new_tokens, 128);
  EXPECT_EQ(resolved({.max_new_tokens = 3}, R"({"max_new_tokens": 9})").max_new_tokens, 3);
}

TEST(Resolve, NotesWhatTransformersWouldDoBesides) {
  EXPECT_TRUE(
      resolved({}, R"({"num_beams": 1, "typical_p": 1.0, "_from_model_config": true})").notes.empty());
  const auto notes = resolved({}, R"({"num_beams": 4, "bad_words_ids": [[1]]})").notes;
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0], "generation_config.json: num_beams is not used");
}

TEST(Resolve, RefusesFlagsOutOfRange) {
  for (const auto& [request, what] :
       {std::pair<Request, const char*>{{.temperature = -1}, "--temperature is -1"},
        {{.top_p = 0}, "--top-p is 0"},
        {{.top_p = 1.5}, "--top-p is 1.5"},
        {{.top_k = -1}, "--top-k is -1"},
        {{.min_p = 2}, "--min-p is 2"},
        {{.stops = {""}}, "a --stop text is empty"},
        {{.prompts = {"-"}, .messages_files = {"-"}}, "standard input is named twice"},
        {{.prompts = {"a"}, .context = 9}, "--context is for a chat from standard input"},
        {{.max_new_tokens = 0}, "--max-new-tokens is 0"},
        {{.batch_size = 0}, "--batch-size is 0"},
        {{.repetition_penalty = 0}, "--repetition-penalty is 0"}}) {
    const auto result = resolve(request, json("{}"), json("{}"), 300);
    ASSERT_FALSE(result.ok()) << what;
    EXPECT_EQ(result.error().what, what);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(result.error().hint.empty());
  }
  EXPECT_EQ(resolve({}, json(R"({"top_p": "a"})"), json("{}"), 300).error().code, ErrorCode::kBadData);
}

/// A model of bytes in an empty folder.
class Prompts : public ::testing::Test {
 protected:
  Result<std::vector<Prompt>> read(const Request& request, int64_t vocab_size = 300) {
    auto codec = TextCodec::open(folder_.path(), vocab_size);
    PLIMSOLL_CHECK(codec.ok());
    auto format = ChatFormat::open(folder_.path(), request);
    if (!format) return std::move(format).error();
    return read_prompts(request, {*codec, *format, bos_id_, vocab_size});
  }
  io::TemporaryFolder folder_;
  std::optional<int32_t> bos_id_;
};

using Ids = std::vector<int32_t>;

TEST_F(Prompts, ComeFromFlagsAndFilesInOrder) {
  const std::string text = folder_.write("a.txt", "one\r\n\n  \ntwo words"),
                    lines = folder_.write("b.jsonl", R"({"prompt": "h\u00e9"}
{"ids": [1, 299]}
)");
  const auto prompts = read({.prompts = {"x"}, .prompt_files = {text, lines}, .prompt_ids = {"5,6"}});
  ASSERT_TRUE(prompts.ok()) << prompts.error().message();
  ASSERT_EQ(prompts->size(), 6U);
  EXPECT_EQ((*prompts)[0].ids, Ids{'x'});
  EXPECT_EQ((*prompts)[1].ids, (Ids{5, 6}));
  EXPECT_EQ((*prompts)[2].text, "one");
  EXPECT_EQ((*prompts)[3].text, "two words");
  EXPECT_EQ((*prompts)[4].ids, (Ids{'h', 0xC3, 0xA9}));
  EXPECT_EQ((*prompts)[5].ids, (Ids{1, 299}));
}

TEST_F(Prompts, AnEmptyOneBeginsASequenceWhereThereIsAToken) {
  EXPECT_EQ(read({.prompts = {""}}).error().what, "the prompt is empty");
  bos_id_ = 17;
  EXPECT_EQ((*read({.prompts = {""}}))[0].ids, Ids{17});
}

TEST_F(Prompts, RefusesWhatIsNone) {
  const auto error_of = [&](const Request& request, int64_t vocab_size = 300) {
    const auto prompts = read(request, vocab_size);
    EXPECT_FALSE(prompts.ok());
    EXPECT_FALSE(prompts.error().hint.empty());
    return prompts.error();
  };
  EXPECT_EQ(error_of({}).what, "there is no prompt");
  EXPECT_EQ(error_of({.prompt_ids = {"1,300"}}).what, "the id 300 is not in the model's vocabulary");
  for (const char* bad : {"1,,2", "1,", ",1", "a", "1 2", "-", "99999999999999999999"})
    EXPECT_EQ(error_of({.prompt_ids = {bad}}).where, "--prompt-ids") << bad;
  EXPECT_EQ(error_of({.prompt_ids = {"-1"}}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of({.prompt_ids = {""}}).what, "the prompt has no ids");
  EXPECT_EQ(error_of({.prompts = {"text"}}, 1000).what,
            "the model has no tokenizer.json, so it takes ids and no text");
  EXPECT_EQ(error_of({.prompt_files = {"prompts.csv"}}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of({.prompt_files = {folder_.path("none.txt")}}).code, ErrorCode::kBadData);
  EXPECT_EQ(error_of({.prompt_files = {folder_.write("e.txt", "\n\n")}}).what, "the file has no prompts");
  for (const char* line :
       {"[1]", "{\"prompt\": 3}", "{\"ids\": [1.5]}", "{\"ids\": [300]}", "{\"ids\": []}", "{"}) {
    const Error error = error_of({.prompt_files = {folder_.write("bad.jsonl", line)}});
    EXPECT_EQ(error.code, ErrorCode::kBadData) << line;
    EXPECT_NE(error.where.find("bad.jsonl:1"), std::string::npos) << error.message();
  }
}

constexpr const char* kTemplate =
    "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}"
    "{% if add_generation_prompt %}[assistant: {% endif %}";

/// The ids of a model of bytes as text.
std::string text_of(const Prompt& prompt) { return {prompt.ids.begin(), prompt.ids.end()}; }

TEST_F(Prompts, AreAUsersMessageWhereThereIsATemplate) {
  folder_.write("chat_template.jinja", kTemplate);
  const std::string lines = folder_.write("m.jsonl", R"({"messages": [{"role": "user", "content": "a"},
)");
  const std::string good =
      folder_.write("c.jsonl",
                    R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "last"}]}
{"prompt": [{"role": "user", "content": "trl"}]}
{"prompt": "plain"}
{"ids": [65]}
)");
  const auto prompts = read({.prompts = {"hi"}, .messages_files = {good}, .system = "be brief"});
  ASSERT_TRUE(prompts.ok()) << prompts.error().message();
  ASSERT_EQ(prompts->size(), 5U);
  EXPECT_EQ(text_of((*prompts)[0]), "[system: be brief][user: hi][assistant: ");
  EXPECT_EQ((*prompts)[0].text, "hi");
  EXPECT_EQ(text_of((*prompts)[1]), "[system: s][user: last][assistant: ");
  EXPECT_EQ((*prompts)[1].title, "last");
  EXPECT_EQ(text_of((*prompts)[2]), "[system: be brief][user: trl][assistant: ");
  EXPECT_EQ(text_of((*prompts)[3]), "[system: be brief][user: plain][assistant: ");
  EXPECT_EQ(text_of((*prompts)[4]), "A");
  EXPECT_EQ(text_of((*read({.prompts = {"hi"}, .raw = true}))[0]), "hi");
  EXPECT_EQ(read({.messages_files = {lines}}).error().code, ErrorCode::kBadData);
  EXPECT_EQ(read({.messages_files = {good}, .raw = true}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Prompts, NeedATemplateForMessages) {
  const std::string file = folder_.write("m.jsonl", R"({"messages": [{"role": "user", "content": "a"}]})");
  for (const Request& request : {Request{.messages_files = {file}},
                                 {.prompts = {"a"}, .chat = true},
                                 {.prompts = {"a"}, .system = "s"}}) {
    const auto prompts = read(request);
    ASSERT_FALSE(prompts.ok());
    EXPECT_EQ(prompts.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(prompts.error().hint.find("--chat-template"), std::string::npos);
  }
  const std::string other = folder_.write("other.jinja", kTemplate);
  const auto prompts = read({.messages_files = {file}, .chat_template = other});
  ASSERT_TRUE(prompts.ok()) << prompts.error().message();
  EXPECT_EQ(text_of((*prompts)[0]), "[user: a][assistant: ");
}

TEST_F(Prompts, AFileIsOnePrompt) {
  const std::string file = folder_.write("whole.md", "one\n\ntwo\n");
  EXPECT_EQ((*read({.text_files = {file}}))[0].text, "one\n\ntwo");
}

TEST_F(Prompts, ATemplateTellsWhatEndsAnAnswer) {
  folder_.write("chat_template.jinja", kTemplate);
  const auto format = ChatFormat::open(folder_.path(), {});
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(format->behind_answer(), "]");
}

TEST_F(Prompts, BytesStreamInWholeCharacters) {
  const auto codec = TextCodec::open(folder_.path(), 300);
  ASSERT_TRUE(codec.ok());
  const Ids ids{'a', 0xE2, 0x82, 0xAC, 256, 0xFF, 'b', 0xF0, 0x9F, 0x98};
  TextCodec::Stream stream(*codec);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(stream.push(id));
  parts.push_back(stream.finish());
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "", "€", "", "\xEF\xBF\xBD", "b", "", "", "",
                                             "\xEF\xBF\xBD"}));
  std::string whole;
  for (const std::string& part : parts) whole += part;
  EXPECT_EQ(codec->decode(ids), whole);
}

TEST_F(Prompts, WithoutTextIdsStream) {
  const auto codec = TextCodec::open(folder_.path(), 1000);
  ASSERT_TRUE(codec.ok());
  EXPECT_FALSE(codec->has_text());
  TextCodec::Stream stream(*codec);
  std::string text = stream.push(7);
  text += stream.push(800);
  text += stream.finish();
  EXPECT_EQ(text, "7 800");
  EXPECT_EQ(codec->decode(Ids{7}), "");
}

}  // namespace
}  // namespace plimsoll::generate
