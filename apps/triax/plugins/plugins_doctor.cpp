// SPDX-License-Identifier: Apache-2.0
// triax plugins doctor: examines one plugin, and explains everything that is wrong with it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "doctor/diagnosis.hpp"
#include "plugin/loader.hpp"
#include "plugins/locate_plugin.hpp"
#include "plugins/plugins_verbs.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

struct DoctorArguments {
  std::vector<std::string> folders; // --path
  std::string plugin;
  bool json = false;
};

std::string padded(std::string word, std::size_t width) {
  word.resize(std::max(word.size(), width), ' ');
  return word;
}

constexpr std::size_t kOutcomeWidth = 9, kNameWidth = 12;

/// The lines of a text without their indentation: the message of an Error may have its hint on a line below.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    out.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  return out;
}

void print_check(const doctor::Check& check) {
  const std::string indent(2 + kOutcomeWidth + kNameWidth, ' ');
  std::vector<std::string> lines = lines_of(check.text);
  lines.insert(lines.end(), check.details.begin(), check.details.end());
  if (!check.next.empty()) lines.push_back("next: " + check.next);
  std::string begin =
      "  " + padded(std::string(doctor::name_of(check.outcome)), kOutcomeWidth) + padded(check.name, kNameWidth);
  for (const std::string& line : lines) result_out() << std::exchange(begin, indent) << printable_line(line) << '\n';
}

/// Checks that cannot be made for one reason are one line. Returns the check after them.
std::vector<doctor::Check>::const_iterator print_skipped(std::vector<doctor::Check>::const_iterator first,
                                                         std::vector<doctor::Check>::const_iterator end) {
  const auto last = std::find_if_not(first, end, [first](const doctor::Check& check) {
    return check.outcome == first->outcome && check.text == first->text;
  });
  std::string names;
  for (auto check = first; check != last; ++check) names.append(names.empty() ? "" : ", ").append(check->name);
  result_out() << "  " << padded(std::string(doctor::name_of(first->outcome)), kOutcomeWidth) << names << '\n'
               << "  " << std::string(kOutcomeWidth + kNameWidth, ' ') << printable_line(first->text) << '\n';
  return last;
}

void print(const doctor::Diagnosis& diagnosis) {
  for (auto check = diagnosis.checks.begin(); check != diagnosis.checks.end();) {
    if (check->outcome == doctor::Outcome::skipped) {
      check = print_skipped(check, diagnosis.checks.end());
    } else {
      print_check(*check++);
    }
  }
  const std::size_t problems = diagnosis.problems();
  const std::string name = printable_line(diagnosis.plugin);
  if (problems == 0) {
    result_out() << text("{} is healthy\n", name);
  } else {
    result_out() << text("{} has {} problem{}\n", name, problems, problems == 1 ? "" : "s");
  }
}

int examine(const DoctorArguments& arguments) {
  const doctor::Diagnosis diagnosis = doctor::diagnose(arguments.plugin, folders_to_search(arguments.folders));
  if (arguments.json) {
    result_out() << doctor::to_json(diagnosis) << '\n';
  } else {
    print(diagnosis);
  }
  return diagnosis.problems() == 0 ? kDone : kFailed;
}

} // namespace

void add_plugins_doctor(CLI::App& plugins, int& status) {
  const auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* const verb = plugins.add_subcommand(
      "doctor", "examines one plugin: every check that it must pass, and what to do about each problem");
  verb->add_option("plugin", arguments->plugin, "its name, or the path of its file")->required();
  repeated(
      verb->add_option("--path", arguments->folders, "folder to search first")->check(existing_folder())->expected(1));
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = examine(*arguments); });
}

} // namespace triax::app
