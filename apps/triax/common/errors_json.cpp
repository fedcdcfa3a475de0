// SPDX-License-Identifier: Apache-2.0
#include "common/errors_json.hpp"

#include <string>

namespace triax::app {

nlohmann::ordered_json errors_json(const std::vector<config::Diagnostic>& errors) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const config::Diagnostic& error : errors) {
    const config::Position& at = error.at;
    out.push_back({{"code", std::string(name_of(error.refusal.code))},
                   {"keys", error.refusal.keys},
                   {"file", at.file.empty() ? Json() : Json(at.file)},
                   {"line", at.line == 0 ? Json() : Json(at.line)},
                   {"column", at.line == 0 ? Json() : Json(at.column)},
                   {"message", error.refusal.message},
                   {"hint", error.refusal.hint}});
  }
  return out;
}

} // namespace triax::app
