// SPDX-License-Identifier: Apache-2.0
#include "doctor/diagnosis.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/file_checks.hpp"
#include "doctor/load_checks.hpp"
#include "doctor/search_check.hpp"
#include "plugin/elf_note.hpp"
#include "triax/error.hpp"

namespace triax::doctor {

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::note:
      return "note";
    case Outcome::problem:
      return "problem";
    case Outcome::skipped:
      return "skipped";
  }
  return "";
}

std::size_t Diagnosis::problems() const {
  return static_cast<std::size_t>(std::ranges::count(checks, Outcome::problem, &Check::outcome));
}

Diagnosis diagnose(const std::string& plugin, const std::vector<plugin::SearchFolder>& folders,
                   const plugin::CallLimits& limits) {
  Diagnosis out{plugin, {}, {}};
  check_search(plugin, folders, out);
  if (out.file.empty()) return out;
  plugin::ElfFile elf;
  try {
    elf = plugin::read_elf(out.file);
  } catch (const Error& error) { // all other checks need a library
    out.checks.push_back({"file", Outcome::problem, error.message(), {}, error.hint()});
    return out;
  }
  check_file(elf, out);
  check_loading(elf, limits, out);
  return out;
}

std::string to_json(const Diagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  Json checks = Json::array();
  for (const Check& check : diagnosis.checks) {
    checks.push_back({{"check", check.name},
                      {"outcome", std::string(name_of(check.outcome))},
                      {"text", check.text},
                      {"details", check.details},
                      {"next", check.next}});
  }
  const Json json = {{"plugin", diagnosis.plugin},
                     {"file", diagnosis.file.empty() ? Json(nullptr) : Json(diagnosis.file.string())},
                     {"healthy", diagnosis.problems() == 0},
                     {"problems", diagnosis.problems()},
                     {"checks", std::move(checks)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace); // paths need not be UTF-8
}

} // namespace triax::doctor
