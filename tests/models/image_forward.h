// An image model's logits, from a config in JSON: in double precision by the interpreter, and by the CPU
// backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forward.h"
#include "models/image_model.h"

namespace plimsoll::models {

inline std::unique_ptr<ImageModel> image_model_of(const std::string& json) {
  const auto config = io::parse_config_json(json, "config.json");
  PLIMSOLL_CHECK(config.ok(), json);
  auto model = make_image_model(*config);
  PLIMSOLL_CHECK(model.ok(), model ? "" : model.error().message());
  return std::move(*model);
}

/// pixels f32[batch, height, width, channels] -> state "logits".
inline ForwardGraph image_graph(const ImageModel& model, int64_t batch, int64_t height, int64_t width) {
  ForwardGraph f;
  ir::Builder b(f.graph, ops::find_op);
  const ir::TensorType pixels{ir::DType::kF32, {batch, height, width, model.channels()}};
  f.logits = model.logits(b, {.pixels = b.state({"pixels", pixels, ir::StateClass::kInput})});
  PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
  f.type = b.type(f.logits);
  f.graph.declare_state({"logits", f.type, ir::StateClass::kOutput});
  b.assign("logits", f.logits);
  return f;
}

/// Running variances are positive, whatever their name gives.
inline std::vector<float> buffer_values(const Buffer& buffer) {
  std::vector<float> values = some_values(buffer.name, buffer.shape.num_elements(), 0.3F);
  for (float& v : values) v += buffer.init;
  return values;
}

inline std::vector<double> interpret_image(const ImageModel& model, const ForwardGraph& f,
                                           const std::vector<float>& pixels, const ir::Shape& shape) {
  reference::Interpreter interpreter;
  const auto set = [&](const std::string& name, const ir::Shape& of, const std::vector<float>& data) {
    interpreter.set(name, reference::tensor({ir::DType::kF32, of}, {data.begin(), data.end()}));
  };
  for (const Parameter& p : model.parameters()) set(p.name, p.shape, weights_of(p));
  for (const Constant& c : model.constants()) set(c.name, c.shape, c.data);
  for (const Buffer& buffer : model.buffers())
    if (!buffer.is_count) set(buffer.name, buffer.shape, buffer_values(buffer));
  set("pixels", shape, pixels);
  const Status status = interpreter.run(f.graph);
  PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  return interpreter.find("logits")->data;
}

/// The backend's logits of some images are the interpreter's, with and without passes.
inline void expect_images_agree(const ImageModel& model, int64_t batch, int64_t height, int64_t width) {
  const ForwardGraph f = image_graph(model, batch, height, width);
  EXPECT_EQ(f.type.shape, (ir::Shape{batch, 1, model.num_labels()}));
  const ir::Shape shape{batch, height, width, model.channels()};
  const std::vector<float> pixels = some_values("pixels", shape.num_elements(), 1.0F);
  const std::vector<double> expected = interpret_image(model, f, pixels, shape);
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    CpuForward forward(model, image_graph(model, batch, height, width), with_passes);
    for (const Buffer& buffer : model.buffers())
      if (!buffer.is_count) forward.write_buffer(buffer.name, buffer_values(buffer));
    expect_close(forward.run_on("pixels", pixels), expected);
  }
}

}  // namespace plimsoll::models
