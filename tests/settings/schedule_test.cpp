// Schedules against values recorded from transformers 5.23 and torch 2.15 (record_schedules.py beside this
// file): learning rate 3e-4, warm-up 3, 10 steps, the rates of steps 1 to 12.
#include "settings/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

struct RatesCase {
  ScheduleOptions options;
  std::vector<double> rates;
};

std::vector<RatesCase> rates_cases() {
  constexpr double kRate = 3e-4;
  const auto base = [](std::string name) {
    return ScheduleOptions{
        .name = std::move(name), .learning_rate = kRate, .warmup_steps = 3, .total_steps = 10};
  };
  std::vector<RatesCase> table;
  const auto add = [&](ScheduleOptions options, std::vector<double> rates) {
    table.push_back({std::move(options), std::move(rates)});
  };
  {
    ScheduleOptions o = base("constant");
    add(o, {0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003});
  }
  {
    ScheduleOptions o = base("constant_with_warmup");
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.0003, 0.0003, 0.0003, 0.0003,
            0.0003, 0.0003, 0.0003, 0.0003});
  }
  {
    ScheduleOptions o = base("linear");
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.0002571428571428571,
            0.00021428571428571427, 0.0001714285714285714, 0.00012857142857142855, 8.57142857142857e-05,
            4.285714285714285e-05, 0.0, 0.0});
  }
  {
    ScheduleOptions o = base("cosine");
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.0002851453301853628,
            0.00024352347027881003, 0.00018337814009344714, 0.00011662185990655284, 5.6476529721189974e-05,
            1.4854669814637143e-05, 0.0, 1.4854669814637127e-05});
  }
  {
    ScheduleOptions o = base("cosine");
    o.num_cycles = 1.5;
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.00018337814009344714,
            1.4854669814637143e-05, 5.647652972118994e-05, 0.00024352347027880997, 0.0002851453301853629,
            0.00011662185990655287, 0.0, 0.00011662185990655278});
  }
  {
    ScheduleOptions o = base("cosine_with_restarts");
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.0002851453301853628,
            0.00024352347027881003, 0.00018337814009344714, 0.00011662185990655284, 5.6476529721189974e-05,
            1.4854669814637143e-05, 0.0, 0.0});
  }
  {
    ScheduleOptions o = base("cosine_with_restarts");
    o.num_cycles = 2.0;
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.00024352347027881003,
            0.00011662185990655284, 1.4854669814637143e-05, 0.0002851453301853629, 0.00018337814009344714,
            5.647652972119002e-05, 0.0, 0.0});
  }
  {
    ScheduleOptions o = base("polynomial");
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.00025715714285714283,
            0.0002143142857142857, 0.00017147142857142856, 0.00012862857142857141, 8.578571428571428e-05,
            4.294285714285716e-05, 9.999999999999998e-08, 9.999999999999998e-08});
  }
  {
    ScheduleOptions o = base("polynomial");
    o.lr_end = 1e-05;
    o.power = 2.0;
    add(o, {0.0, 9.999999999999999e-05, 0.00019999999999999998, 0.0003, 0.00022306122448979593,
            0.00015795918367346936, 0.00010469387755102038, 6.326530612244899e-05, 3.36734693877551e-05,
            1.591836734693878e-05, 1e-05, 1e-05});
  }
  {
    ScheduleOptions o = base("wsd");
    o.num_decay_steps = 4;
    o.decay_type = Ramp::kLinear;
    o.min_lr_ratio = 0.1;
    add(o,
        {2.9999999999999997e-05, 0.00011999999999999999, 0.00020999999999999998, 0.0003, 0.0003, 0.0003,
         0.0003, 0.00023249999999999999, 0.000165, 9.75e-05, 2.9999999999999997e-05, 2.9999999999999997e-05});
  }
  {
    ScheduleOptions o = base("wsd");
    o.num_decay_steps = 4;
    o.warmup_type = Ramp::kCosine;
    add(o, {0.0, 7.499999999999998e-05, 0.00022499999999999994, 0.0003, 0.0003, 0.0003, 0.0003,
            0.00025606601717798207, 0.00015, 4.3933982822017876e-05, 0.0, 0.0});
  }
  {
    ScheduleOptions o = base("wsd");
    o.num_decay_steps = 4;
    o.warmup_type = Ramp::kOneMinusSqrt;
    o.decay_type = Ramp::kOneMinusSqrt;
    o.min_lr_ratio = 0.05;
    add(o, {1.4999999999999999e-05, 6.729847443559807e-05, 0.0001354551732809566, 0.0003, 0.0003, 0.0003,
            0.0003, 0.00015749999999999998, 9.847456736183393e-05, 5.318275992143499e-05,
            1.4999999999999999e-05, 1.4999999999999999e-05});
  }
  {
    ScheduleOptions o = base("step");
    o.warmup_steps = 0;
    o.step_size = 4;
    o.gamma = 0.5;
    add(o, {0.0003, 0.0003, 0.0003, 0.0003, 0.00015, 0.00015, 0.00015, 0.00015, 7.5e-05, 7.5e-05, 7.5e-05,
            7.5e-05});
  }
  {
    ScheduleOptions o = base("one_cycle");
    add(o, {1.200000000000002e-05, 0.000156, 0.0003, 0.0002851453896040421, 0.00024352369618492893,
            0.00018337860658088678, 0.00011662259341911323, 5.64775038150711e-05, 1.4855810395957886e-05,
            1.1999999999999998e-09});
  }
  {
    ScheduleOptions o = base("one_cycle");
    o.pct_start = 0.5;
    o.div_factor = 10.0;
    o.final_div_factor = 100.0;
    add(o, {3.0000000000000024e-05, 6.954058453981612e-05, 0.000165, 0.0002604594154601839, 0.0003,
            0.00027138119660708587, 0.00019645619660708585, 0.00010384380339291413, 2.891880339291414e-05,
            3e-07});
  }
  return table;
}

TEST(Schedule, AgreesWithTheRecordedRates) {
  for (const RatesCase& row : rates_cases()) {
    const auto schedule = Schedule::create(row.options);
    ASSERT_TRUE(schedule) << schedule.error().message();
    for (size_t i = 0; i < row.rates.size(); ++i)
      EXPECT_NEAR(schedule->rate(static_cast<int64_t>(i) + 1), row.rates[i], 1e-17 + row.rates[i] * 1e-12)
          << row.options.name << " step " << i + 1;
  }
}

TEST(Schedule, AliasIsTheSame) {
  const auto a = Schedule::create({.name = "wsd", .warmup_steps = 2, .total_steps = 50});
  const auto b = Schedule::create({.name = "warmup_stable_decay", .warmup_steps = 2, .total_steps = 50});
  for (int64_t step = 1; step <= 60; ++step) EXPECT_EQ(a->rate(step), b->rate(step));
}

TEST(Schedule, IsFiniteAtTheEdges) {
  for (const std::string& name : schedule_names())
    for (const int64_t total : {1, 2, 3})
      for (const int64_t warmup : {0, 1, 3, 7}) {
        const auto schedule = Schedule::create(
            {.name = name, .learning_rate = 1.0, .warmup_steps = warmup, .total_steps = total});
        ASSERT_TRUE(schedule);
        for (int64_t step = 1; step < 12; ++step) {
          const double rate = schedule->rate(step);
          EXPECT_TRUE(rate >= 0 && rate <= 1.0)
              << name << " " << total << " " << warmup << " " << step << ": " << rate;
        }
      }
}

TEST(Schedule, RefusesWhatItCannotBe) {
  struct Refused {
    ScheduleOptions options;
    const char* what;
  };
  const Refused table[] = {
      {{.name = "cosin"}, "there is no 'cosin'"},
      {{.name = "polynomial", .learning_rate = 1e-8}, "lr_end"},
      {{.name = "step", .step_size = 0}, "step_size"},
      {{.learning_rate = -1}, "learning rate"},
  };
  for (const Refused& bad : table) {
    const auto schedule = Schedule::create(bad.options);
    ASSERT_FALSE(schedule);
    EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(schedule.error().what, HasSubstr(bad.what));
  }
}

TEST(MakeSchedule, TurnsTheRatioIntoSteps) {
  TrainingSettings training{.learning_rate = 1.0, .lr_scheduler = "linear", .warmup_ratio = 0.25};
  const auto schedule = make_schedule(training, 10);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->rate(1), 0.0);
  EXPECT_EQ(schedule->rate(4), 1.0);  // ceil(2.5) = 3 steps of warm-up
}

}  // namespace
}  // namespace plimsoll::settings
