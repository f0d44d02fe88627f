// What ranks tell each other, and what they find out when one of them goes.
#include "ranks/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "ranks/error_text.h"
#include "ranks/group_ranks.h"
#include "ranks/meeting.h"

namespace plimsoll::ranks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Group, CollectsAndShares) {
  fixtures::with_ranks(4, [](Group& group) {
    for (int step = 0; step < 20; ++step) {
      const auto texts = group.collect(std::to_string(group.rank() * 10 + step));
      ASSERT_TRUE(texts);
      if (group.rank() == 0)
        EXPECT_THAT(*texts, ElementsAre(std::to_string(step), std::to_string(10 + step),
                                        std::to_string(20 + step), std::to_string(30 + step)));
      else
        EXPECT_THAT(*texts, IsEmpty());
      const auto text = group.share(group.rank() == 0 ? "go " + std::to_string(step) : "");
      ASSERT_TRUE(text);
      EXPECT_EQ(*text, "go " + std::to_string(step));
    }
  });
}

TEST(Group, AnErrorIsEverybodysAndToldOnce) {
  for (const int failing : {0, 1})
    fixtures::with_ranks(3, [failing](Group& group) {
      if (group.rank() == failing) {
        const Error mine = group.fail({ErrorCode::kDoesNotFit, "too large", "here", "less"});
        EXPECT_EQ(is_told(mine), failing != 0);
        EXPECT_EQ(mine.code, ErrorCode::kDoesNotFit);
        return;
      }
      const auto text = group.rank() == 0 ? group.collect("").error() : group.share("").error();
      EXPECT_EQ(text.code, ErrorCode::kDoesNotFit);
      if (group.rank() == 0)
        EXPECT_EQ(text.message(), "too large: rank 1: here");
      else
        EXPECT_TRUE(is_told(text));
    });
}

TEST(Group, ARankThatLeavesInOrderIsNoLoss) {
  fixtures::with_ranks(2, [](Group& group) {
    ASSERT_TRUE(group.share("end"));
    group.leave();
    EXPECT_FALSE(group.failure());
  });
}

TEST(Group, ARankThatGivesNoSignOfLifeIsNamed) {
  const std::string job = fixtures::some_job();
  std::thread silent([&] {  // it comes, gives one sign of life, and no other
    auto connection = connect_to_first(fixtures::launch_of(job, 1, 2), 10);
    ASSERT_TRUE(connection);
    ASSERT_TRUE(connection->send(MessageKind::kHello, "1 2 4711 b -"));
    ASSERT_TRUE(connection->send(MessageKind::kBeat, "7 1 1"));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  });
  auto first = Group::join(fixtures::launch_of(job, 0, 2), {.deadline_seconds = 1, .build = "-"});
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE((*first)->start_watching());
  (*first)->set_note("last checkpoint: x");
  const double start = now_seconds();
  const auto texts = (*first)->collect("");
  ASSERT_FALSE(texts);
  EXPECT_LT(now_seconds() - start, 2.4);
  EXPECT_EQ(texts.error().what,
            "rank 1 (host b, pid 4711) gave no sign of life for 1 s in step 7; last checkpoint: x");
  EXPECT_EQ(texts.error().code, ErrorCode::kIo);
  silent.join();
}

TEST(Group, ARankThatHangsWithinAStepIsNamed) {
  const std::string job = fixtures::some_job();
  std::thread hanging([&] {
    auto connection = connect_to_first(fixtures::launch_of(job, 1, 2), 10);
    ASSERT_TRUE(connection);
    ASSERT_TRUE(connection->send(MessageKind::kHello, "1 2 4711 b -"));
    for (int beat = 0; beat < 12; ++beat) {
      ASSERT_TRUE(connection->send(MessageKind::kBeat, "3 1 5"));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  auto first = Group::join(fixtures::launch_of(job, 0, 2), {.deadline_seconds = 1, .build = "-"});
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE((*first)->start_watching());
  const auto texts = (*first)->collect("");
  ASSERT_FALSE(texts);
  EXPECT_THAT(texts.error().what, HasSubstr("made no progress for 1 s in step 3"));
  hanging.join();
}

TEST(Group, ARankThatEndsIsNamedAtOnce) {
  const std::string job = fixtures::some_job();
  std::thread ending([&] {
    auto connection = connect_to_first(fixtures::launch_of(job, 1, 2), 10);
    ASSERT_TRUE(connection);
    ASSERT_TRUE(connection->send(MessageKind::kHello, "1 2 4711 b -"));
    ASSERT_TRUE(connection->wait_for_next(10));
  });
  auto first = Group::join(fixtures::launch_of(job, 0, 2), {.build = "-"});
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE((*first)->start_watching());
  const double start = now_seconds();
  const auto texts = (*first)->collect("");
  ASSERT_FALSE(texts);
  EXPECT_LT(now_seconds() - start, 1);
  EXPECT_THAT(texts.error().what, HasSubstr("rank 1 (host b, pid 4711) ended in step 0"));
  ending.join();
}

TEST(Group, WhoDoesNotComeIsNamed) {
  const auto alone = Group::join(fixtures::launch_of(fixtures::some_job(), 0, 3), {.start_seconds = 0.2});
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().what, HasSubstr("rank 1, 2 of 3"));
  const auto other = Group::join(fixtures::launch_of(fixtures::some_job(), 1, 3), {.start_seconds = 0.2});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().what, HasSubstr("rank 0 has not come"));
}

/// Rank 0's error where the second process introduces itself so.
Error refusal(int rank, int ranks, const std::string& build) {
  const std::string job = fixtures::some_job();
  std::thread other([&] {
    const auto group = Group::join(fixtures::launch_of(job, rank, ranks), {.build = build});
    EXPECT_FALSE(group);
  });
  const auto first = Group::join(fixtures::launch_of(job, 0, 2), {.build = "a"});
  other.join();
  EXPECT_FALSE(first);
  return first ? Error{} : first.error();
}

TEST(Group, StrangersAreRefused) {
  EXPECT_THAT(refusal(1, 2, "b").what, HasSubstr("rank 1 runs build b, rank 0 build a"));
  EXPECT_THAT(refusal(1, 3, "a").what, HasSubstr("of 3 ranks, rank 0 of 2"));
  EXPECT_EQ(refusal(1, 3, "a").code, ErrorCode::kBadData);
}

TEST(ErrorText, KeepsAllParts) {
  const Error error{ErrorCode::kDiverged, "what", "where", "hint"};
  const Error read = parse_error(error_text(error));
  EXPECT_EQ(read.code, error.code);
  EXPECT_EQ(read.message(), error.message());
  EXPECT_EQ(read.hint, error.hint);
  EXPECT_EQ(parse_error("").code, ErrorCode::kInternal);
  EXPECT_EQ(parse_error("~x").code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace plimsoll::ranks
