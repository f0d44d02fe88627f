#include "generate/chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::generate {
namespace {

std::string rendered(const std::string& content_of_template, const std::string& record) {
  const io::TemporaryFolder folder;
  folder.write("chat_template.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ " + content_of_template +
                   " }}</s>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}");
  const auto format = ChatFormat::open(folder.path(), {});
  if (!format) return format.error().message();
  auto text = format->render(*io::parse_json(record));
  return text ? *text : "error: " + text.error().message();
}

/// As apply_chat_template with add_generation_prompt, or with continue_final_message.
TEST(ChatFormat, GoesOnWithTheAssistantsLastMessage) {
  const std::string user = R"({"role": "user", "content": "a"})";
  const auto record = [&](const std::string& last) { return R"({"messages": [)" + user + last + "]}"; };
  EXPECT_EQ(rendered("m.content", record("")), "<user>a</s><assistant>");
  const std::string last = R"(, {"role": "assistant", "content": "b c "})";
  EXPECT_EQ(rendered("m.content", record(last)), "<user>a</s><assistant>b c ");
  EXPECT_EQ(rendered("m.content | trim", record(last)), "<user>a</s><assistant>b c");
  EXPECT_EQ(rendered("m.content if m.content is string else m.content[1].text",
                     record(R"(, {"role": "assistant", "content": [{"type": "image"}, {"text": "b"}]})")),
            "<user>a</s><assistant>b");
  EXPECT_EQ(rendered("'' if m.role == 'assistant' else m.content", record(last)).substr(0, 40),
            "error: the last message is the assistant");
}

}  // namespace
}  // namespace plimsoll::generate
