// What ranks tell each other, and what they find out when one of them goes.
#include "ranks/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>

#include "base/process.h"
#include "ranks/error_text.h"
#include "ranks/exchange_checks.h"
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

/// Between machines that have no library of MPI; texts of the run itself come in between.
TEST(Group, ExchangesBytesOverItsConnections) {
  fixtures::with_ranks(3,
                       [](Group& group) {
                         fixtures::check_exchanges(group.communicator());
                         ASSERT_TRUE(group.collect("report"));
                         const auto text = group.share(group.rank() == 0 ? "go on" : "");
                         ASSERT_TRUE(text && *text == "go on");
                         fixtures::check_gather(group.communicator(), 7, 21);
                         EXPECT_GT(group.take_wait_seconds(), 0);
                       },
                       {.over_channel = true});
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

TEST(Group, OfRanksThatFailAlikeRankZeroTells) {
  for (int i = 0; i < 5; ++i)
    fixtures::with_ranks(3, [](Group& group) {
      const Error mine = group.fail({ErrorCode::kDiverged, "the loss is nan"});
      EXPECT_EQ(mine.code, ErrorCode::kDiverged);
      EXPECT_EQ(mine.what, group.rank() == 0 ? "the loss is nan" : "") << group.rank();
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

/// What rank 0 says of a rank that introduces itself, does so much and then nothing until it is given up.
std::string verdict(const std::function<void(Connection&)>& does) {
  const std::string job = fixtures::some_job();
  std::promise<void> given_up;
  std::thread other([&] {
    auto connection = connect_to_first(fixtures::launch_of(job, 1, 2), 10);
    ASSERT_TRUE(connection);
    ASSERT_TRUE(connection->send(MessageKind::kHello, "1 2 4711 b -"));
    does(*connection);
    given_up.get_future().wait();
  });
  auto first = Group::join(fixtures::launch_of(job, 0, 2), {.deadline_seconds = 1, .build = "-"});
  EXPECT_TRUE(first && (*first)->start_watching());
  const auto texts = first ? (*first)->collect("") : Result<std::vector<std::string>>(first.error());
  given_up.set_value();
  other.join();
  return texts ? "" : texts.error().what;
}

TEST(Group, ARankThatIsSilentFromTheStartIsNamed) {
  EXPECT_THAT(verdict([](Connection&) {}), HasSubstr("gave no sign of life for 1 s in step 0"));
}

TEST(Group, ARankThatStopsWithinAStepIsSilentAndDoesNotHang) {
  EXPECT_THAT(verdict([](Connection& connection) {
                for (int beat = 0; beat < 2; ++beat) {
                  EXPECT_TRUE(connection.send(MessageKind::kBeat, "3 1 5"));
                  std::this_thread::sleep_for(std::chrono::milliseconds(600));
                }
              }),
              HasSubstr("gave no sign of life for 1 s in step 3"));
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
  EXPECT_THAT(other.error().what, HasSubstr("rank 0 has not listened"));
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
  EXPECT_THAT(refusal(1, 3, "a").what, HasSubstr("one of 3 ranks, rank 0 as one of 2"));
  EXPECT_EQ(refusal(1, 3, "a").code, ErrorCode::kBadData);
}

TEST(Group, ASignalEndsTheMeeting) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR2, &action, &before);
  std::atomic<bool> ended{false};
  std::thread first([&] {
    const auto group = Group::join(fixtures::launch_of(fixtures::some_job(), 0, 2), {.start_seconds = 60});
    ended = true;
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, ErrorCode::kInterrupted) << group.error().message();
  });
  while (!ended) {
    ::pthread_kill(first.native_handle(), SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  first.join();
  ::sigaction(SIGUSR2, &before, nullptr);
}

/// Runs it as a process of another user, with the address of a job of this one's. False: there can be none.
bool as_another_user(const std::string& job, const std::function<void(int socket, const sockaddr_un&)>& work,
                     const std::function<void()>& meanwhile) {
  constexpr uid_t kNobody = 65534;
  constexpr int kRefused = 77;
  if (::geteuid() != 0) return false;
  sockaddr_un address = {};
  const std::string name = "plimsoll.0." + job;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(kRefused);
    work(::socket(AF_UNIX, SOCK_STREAM, 0), address);
    ::_exit(0);
  }
  meanwhile();
  int status = 0;
  ::waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kRefused);
}

socklen_t bytes_of(const std::string& job) {
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen("plimsoll.0.") +
                                job.size());
}

TEST(Group, AnotherUsersProcessIsNoRank) {
  const std::string job = fixtures::some_job();
  const auto introduce = [&](int socket, const sockaddr_un& first) {
    while (::connect(socket, reinterpret_cast<const sockaddr*>(&first), bytes_of(job)) != 0) ::usleep(1000);
    Connection connection(socket);
    (void)connection.send(MessageKind::kHello, "1 2 4711 b -");
    (void)connection.wait_for_next(10);
  };
  const bool could = as_another_user(job, introduce, [&] {
    const auto first = Group::join(fixtures::launch_of(job, 0, 2), {.start_seconds = 1, .build = "-"});
    ASSERT_FALSE(first);
    EXPECT_THAT(first.error().what, HasSubstr("rank 1 of 2 has not connected"));
  });
  if (!could) GTEST_SKIP() << "root alone can be another user";
}

TEST(Group, AnotherUsersProcessIsNotRankZero) {
  const std::string job = fixtures::some_job();
  const auto squat = [&](int socket, const sockaddr_un& first) {
    ::bind(socket, reinterpret_cast<const sockaddr*>(&first), bytes_of(job));
    ::listen(socket, 1);
    Connection connection(::accept(socket, nullptr, nullptr));
    (void)connection.wait_for_next(10);
  };
  std::string said;
  const bool could = as_another_user(job, squat, [&] {
    const auto other = Group::join(fixtures::launch_of(job, 1, 2), {.start_seconds = 5, .build = "-"});
    ASSERT_FALSE(other);
    said = other.error().what;
  });
  if (!could) GTEST_SKIP() << "root alone can be another user";
  EXPECT_THAT(said, HasSubstr("a process of another user listens"));
}

/// Both ends of a connection.
std::array<Connection, 2> connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Connection(ends[0]), Connection(ends[1])};
}

TEST(Connection, NobodyFillsTheMemory) {
  for (const uint32_t claimed : {~uint32_t{0}, uint32_t{8}}) {  // a message without an end, and many small
    auto [here, there] = connected();
    std::atomic<bool> stop{false};
    std::thread pump([&, fd = there.fd()] {
      std::vector<uint32_t> words(4096);
      for (size_t i = 0; i < words.size(); i += 4) words[i] = claimed;
      for (const std::span<const uint32_t> all(words); !stop;)
        if (::send(fd, all.data(), all.size_bytes(), MSG_NOSIGNAL) < 0) return;
    });
    pollfd readable{here.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
    EXPECT_EQ(here.receive(), claimed == 8);
    EXPECT_EQ(here.next().has_value(), claimed == 8);
    stop = true;
    here.close();
    pump.join();
  }
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
