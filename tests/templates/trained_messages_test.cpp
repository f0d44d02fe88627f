// What messages say about being trained on; their masks are example_encoder_test's.
#include "templates/trained_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/conversation.h"

namespace plimsoll::templates {
namespace {

Result<TrainedMessages> read_flags(const std::string& json) {
  Heap heap(1 << 20, 1 << 20, 1 << 20);
  Conversation conversation(heap);
  PLIMSOLL_TRY(read_conversation(json, conversation));
  return trained_messages(conversation.messages);
}

TEST(TrainedMessages, CountsWhatIsLeftOutAndWhatCannotBe) {
  const auto flags = read_flags(R"({"messages": [{"role": "user", "train": true}, {"role": "assistant"},
    {"role": "assistant", "weight": 0}, {"role": "user", "train": false}, {"role": "assistant", "train": true}]})");
  ASSERT_TRUE(flags) << flags.error().message();
  EXPECT_THAT(flags->trained, testing::ElementsAre(1, 1, 0, 1, 1));
  EXPECT_EQ(flags->untrained, 1);
  EXPECT_EQ(flags->other_roles, 1);
}

TEST(TrainedMessages, WeightsAreZeroOrOne) {
  for (const char* weight : {"0.25", "2", "-1", "true", "[1]"}) {
    const auto flags =
        read_flags(std::string(R"({"messages": [{"role": "assistant", "weight": )") + weight + "}]}");
    ASSERT_FALSE(flags) << weight;
    EXPECT_EQ(flags.error().code, ErrorCode::kBadData);
  }
}

}  // namespace
}  // namespace plimsoll::templates
