// SPDX-License-Identifier: Apache-2.0
#include "common/errors_json.hpp"

#include "common/errors_out.hpp"

namespace triax::app {

namespace {
using Json = nlohmann::ordered_json;
}

void add_errors(Json& out, const std::vector<config::Diagnostic>& errors) {
  const std::size_t shown = shown_errors(errors.size());
  out["errors"] = Json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    const config::Diagnostic& error = errors[i];
    const config::Position& at = error.at;
    out["errors"].push_back({{"code", std::string(name_of(error.refusal.code))},
                             {"keys", error.refusal.keys},
                             {"file", at.file.empty() ? Json() : Json(at.file)},
                             {"line", at.line == 0 ? Json() : Json(at.line)},
                             {"column", at.column == 0 ? Json() : Json(at.column)},
                             {"message", error.refusal.message},
                             {"hint", error.refusal.hint}});
  }
  if (shown < errors.size()) out["more_errors"] = errors.size() - shown;
}

std::string errors_line(const std::vector<config::Diagnostic>& errors) {
  Json out;
  add_errors(out, errors);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace); // a path may be invalid UTF-8
}

} // namespace triax::app
