// SPDX-License-Identifier: Apache-2.0
#include "common/machine_text.hpp"

#include "base/scaled_text.hpp"
#include "common/printable_line.hpp"
#include "triax/text.hpp"

namespace triax::app {

std::string machine_text(const os::Machine& machine) {
  return printable_line(text("{}, {} core{}, load {}, {}", machine.processor, machine.cores,
                             machine.cores == 1 ? "" : "s", decimals_text(machine.load, 1), machine.system));
}

nlohmann::ordered_json machine_json(const os::Machine& machine) {
  return {
      {"processor", machine.processor}, {"cores", machine.cores}, {"load", machine.load}, {"system", machine.system}};
}

} // namespace triax::app
