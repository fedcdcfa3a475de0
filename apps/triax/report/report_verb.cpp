// SPDX-License-Identifier: Apache-2.0
// triax report: what runs have done, as text, JSON or a page.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/list_option.hpp"
#include "common/output_flag.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "report/run_report.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct ReportArguments {
  std::vector<std::string> folders;
  std::string html;
  bool json = false;
};

int report_runs(const ReportArguments& arguments) {
  std::vector<ReportedRun> runs;
  std::vector<std::string> comparisons;
  try {
    for (const std::string& folder : arguments.folders) {
      const bool is_left_out = is_comparison(folder) && arguments.folders.size() > 1; // as of runs/*
      if (is_left_out) {
        comparisons.push_back(folder);
      } else {
        runs.push_back(read_run(folder));
      }
    }
    if (runs.empty()) read_run(comparisons.front()); // throws
  } catch (const Error& error) {
    return refuse(config::code_of_unreadable(error.where()), error, "RUN_DIR", arguments.json);
  }
  for (const std::string& folder : comparisons)
    print_warning(Error("is the folder of a comparison, and is left out", folder,
                        "compare.json has its result; the runs of its sides are the folders a and b in it"));
  try {
    if (!arguments.html.empty()) write_output(report_html(runs), arguments.html);
  } catch (const Error& error) {
    print_problem(error.what(), arguments.json);
    return kFailed;
  }
  result_out() << (arguments.json ? report_json(runs) : report_text(runs));
  if (!arguments.json && !arguments.html.empty()) result_out() << "\npage: " << printable_line(arguments.html) << '\n';
  return kDone;
}

} // namespace

void add_report(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb = program.add_subcommand("report", "summarizes what runs have done, and how they differ");
  with_several_paths(*verb, verb->add_option("RUN_DIR", arguments->folders,
                                             "folders of runs: run.dir, by default runs/ and the TOML's name")
                                ->required());
  verb->add_option("--html", arguments->html, "also writes a page with plots, and replaces an existing file")
      ->check(CLI::Validator(output_file_error, {}))
      ->type_name("FILE");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = report_runs(*arguments); });
}

} // namespace triax::app
