// The interface without exceptions: every call that can fail gives a Result.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <vector>

namespace pl = plimsoll;

struct Net : pl::Module {
  pl::Linear up{*this, "up", 4, 8}, down{*this, "down", 8, 1};
};

int main() {
  Net net;
  const auto plan_with = [&](pl::Shape shape) {
    return pl::plan(
        {.inputs = {{"x", pl::f32, {4, 4}}, {"y", pl::f32, shape}},
         .loss = [&](pl::Inputs in) { return pl::mse(net.down(pl::relu(net.up(in["x"]))), in["y"]); },
         .optimizer = pl::SGD{.lr = 0.1}});
  };
  const pl::Result<pl::Plan> wrong = plan_with({3, 5});
  if (wrong || wrong.error().kind() != pl::ErrorKind::invalid_argument)
    return std::puts("shapes that differ pass"), 1;
  const pl::Result<pl::Plan> plan = plan_with({4, 1});
  if (!plan) return std::puts(plan.error().what()), 1;
  pl::Result<pl::Session> session = pl::Session::open(*plan, {.seed = 1});
  if (!session) return std::puts(session.error().what()), 1;
  const std::vector<float> x(16, 0.5F), y(4, 1.0F);
  const pl::Batch batch{{"x", pl::array(x.data(), {4, 4})}, {"y", pl::array(y.data(), {4, 1})}};
  const pl::Result<pl::Step> first = session->step(batch);
  const pl::Result<pl::Step> second = session->step(batch);
  if (!first || !second || !(second->loss < first->loss))
    return std::puts("a step does not lower the loss"), 1;
  if (session->read("no.such")) return std::puts("an unknown name is read"), 1;
  if (const pl::Status saved = session->save("/proc/nowhere");
      saved || saved.error().kind() != pl::ErrorKind::io)
    return std::puts("a folder that cannot be is written"), 1;
  std::puts("ok");
  return 0;
}
