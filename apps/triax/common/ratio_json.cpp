// SPDX-License-Identifier: Apache-2.0
#include "common/ratio_json.hpp"

namespace triax::app {

nlohmann::ordered_json ratio_json(const compare::Ratio& ratio) {
  return {{"value", ratio.value},
          {"interval_95", {ratio.low, ratio.high}},
          {"interval_99", {ratio.low_99, ratio.high_99}},
          {"is_significant", ratio.is_significant},
          {"log_deviation", ratio.deviation},
          {"rounds", ratio.rounds}};
}

} // namespace triax::app
