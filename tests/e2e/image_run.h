// A run over small images of two classes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "corpora/images/image_files.h"
#include "program.h"

namespace plimsoll::e2e {

/// Pictures of two classes, red and blue ones of changing sizes and shades.
inline void write_images(const Folder& folder, const std::string& name, int each) {
  for (const bool red : {false, true}) {
    const std::string path = folder.path(name + (red ? "/red" : "/blue"));
    std::filesystem::create_directories(path);
    for (int i = 0; i < each; ++i) {
      const auto side = static_cast<uint32_t>(9 + i * 7 % 20);
      const auto shade = static_cast<uint8_t>(120 + i * 37 % 120), low = static_cast<uint8_t>(i * 11 % 80);
      std::ofstream(path + "/" + std::to_string(i) + ".png", std::ios::binary) << corpora::png_of(
          side, side + static_cast<uint32_t>(i % 5), red ? shade : low, low, red ? low : shade);
    }
  }
}

inline std::string image_run(const std::string& more = "") {
  return "model:\n  config: {model_type: vit, architectures: [ViTForImageClassification], image_size: 16, "
         "patch_size: 4, hidden_size: 24, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: "
         "40}\n"
         "data: {train: train, eval: eval}\n"
         "training: {global_batch_size: 8, max_steps: 6, learning_rate: 3.0e-3, lr_scheduler: constant}\n"
         "output: {dir: out}\n" +
         more;
}

inline void write_run(const Folder& folder, const std::string& more = "") {
  write_images(folder, "train", 10);
  write_images(folder, "eval", 3);
  folder.write("run.yaml", image_run(more));
}

}  // namespace plimsoll::e2e
