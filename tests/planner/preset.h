// Models of tests, by a preset's name.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "models/model.h"
#include "models/presets.h"

namespace plimsoll::planner {

inline std::unique_ptr<models::Model> preset(const char* name) {
  auto model = models::make_model(*models::preset_config(name));
  EXPECT_TRUE(model.ok());
  return std::move(*model);
}

}  // namespace plimsoll::planner
