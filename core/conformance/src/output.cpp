// SPDX-License-Identifier: Apache-2.0
// Writes results of checks as text in the format of GoogleTest, and as JUnit XML.
#include "triax/conformance/output.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/printable.hpp"
#include "base/xml_text.hpp"
#include "triax/conformance/clause.hpp"
#include "triax/text.hpp"

namespace triax::conformance {

namespace {

std::int64_t count(const std::vector<Result>& results, Outcome outcome) {
  return std::ranges::count(results, outcome, &Result::outcome);
}

std::string checks_text(std::int64_t number) {
  return text("{} {}", number, number == 1 ? "check" : "checks");
}

std::string milliseconds(double seconds) {
  return text("{} ms", static_cast<std::int64_t>(std::lround(1e3 * seconds)));
}

double total_seconds(const std::vector<Result>& results) {
  double sum = 0;
  for (const Result& result : results) sum += result.seconds;
  return sum;
}

/// A value in quotes: in an attribute, a parser replaces a line break by a space unless it is written as a reference.
std::string attribute(const std::string& text) {
  std::string out = xml_escaped(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos;) out.replace(at, 1, "&#10;");
  return out;
}

std::string testcase(const std::string& suite, const Result& result) {
  const std::size_t dot = result.name.find('.');
  std::string out = text("  <testcase classname=\"{}.{}\" name=\"{}\" time=\"{}\"", attribute(suite),
                         attribute(result.name.substr(0, dot)), attribute(result.name.substr(dot + 1)), result.seconds);
  if (result.outcome == Outcome::passed) return out + "/>\n";
  out += ">\n";
  if (result.outcome == Outcome::skipped) out += text("    <skipped message=\"{}\"/>\n", attribute(result.skip_reason));
  for (const std::string& failure : result.failures)
    out +=
        text("    <failure message=\"{}\">{}</failure>\n", attribute(failure), xml_escaped(clause_text(result.clause)));
  return out + "  </testcase>\n";
}

/// Indents all lines but the first.
std::string indented(const std::string& text) {
  std::string out;
  for (const char letter : text) out += letter == '\n' ? "\n    " : std::string(1, letter);
  return out;
}

} // namespace

std::string clause_text(const std::string& id) {
  const Clause& clause = find_clause(id);
  return text("[{}] {} ({}:{})", clause.id, clause.sentence, clause.header, clause.line);
}

void TextOutput::begin(std::size_t checks) {
  out_ << "[==========] " << checks_text(static_cast<std::int64_t>(checks)) << " of " << subject_ << '\n';
}

Listener TextOutput::listener() {
  return {[this](const Check& check) { out_ << "[ RUN      ] " << check.name << '\n'
                                            << std::flush; },
          [this](const Result& result) { ended(result); }};
}

void TextOutput::ended(const Result& result) {
  if (result.outcome == Outcome::skipped) {
    out_ << "  skipped: " << printable(indented(result.skip_reason)) << '\n'
         << "[  SKIPPED ] " << result.name << '\n'
         << std::flush;
    return;
  }
  for (const std::string& failure : result.failures) out_ << "  " << printable(indented(failure)) << '\n';
  if (!result.failures.empty()) out_ << "  contract: " << clause_text(result.clause) << '\n';
  out_ << (result.outcome == Outcome::passed ? "[       OK ] " : "[  FAILED  ] ") << result.name << " ("
       << milliseconds(result.seconds) << ")\n"
       << std::flush;
}

void TextOutput::end(const std::vector<Result>& results) {
  out_ << "[==========] " << checks_text(static_cast<std::int64_t>(results.size())) << " ran ("
       << milliseconds(total_seconds(results)) << ")\n"
       << "[  PASSED  ] " << checks_text(count(results, Outcome::passed)) << '\n';
  const auto list = [&](const char* label, Outcome outcome) {
    if (count(results, outcome) == 0) return;
    out_ << label << checks_text(count(results, outcome)) << ":\n";
    for (const Result& result : results)
      if (result.outcome == outcome) out_ << label << result.name << " [" << result.clause << "]\n";
  };
  list("[  SKIPPED ] ", Outcome::skipped);
  list("[  FAILED  ] ", Outcome::failed);
}

std::string junit_xml(const std::string& suite, const std::vector<Result>& results) {
  const std::string counts =
      text("tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\" time=\"{}\"", results.size(),
           count(results, Outcome::failed), count(results, Outcome::skipped), total_seconds(results));
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += text("<testsuites {}>\n<testsuite name=\"{}\" {}>\n", counts, attribute(suite), counts);
  for (const Result& result : results) out += testcase(suite, result);
  return out + "</testsuite>\n</testsuites>\n";
}

} // namespace triax::conformance
