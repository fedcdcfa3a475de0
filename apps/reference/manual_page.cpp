// SPDX-License-Identifier: Apache-2.0
#include "manual_page.hpp"

#include <algorithm>

#include "completions.hpp"
#include "triax/error.hpp"

namespace triax::reference {

namespace {

/// Escapes text so that troff prints it literally. "\-" prints an ASCII hyphen, which can be copied to a command line.
std::string escape_troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      default:
        out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(const std::string& text) {
  return "\\fB" + escape_troff(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + escape_troff(text) + "\\fR";
}

/// A line with a period at its end.
std::string sentence(const std::string& text) {
  return escape_troff(text) + (text.ends_with('.') ? "\n" : ".\n");
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

std::string entry(const Argument& argument) {
  const bool is_flag = argument.names.front().starts_with('-');
  std::string out = ".TP\n";
  for (std::size_t i = 0; i < argument.names.size(); ++i) {
    const std::string& name = argument.names[i];
    out += (i > 0 ? ", " : "") + (is_flag ? bold(name) : italic(name));
  }
  if (is_flag && !argument.value.empty()) out += " " + italic(argument.value);
  out += argument.several_values ? " ...\n" : "\n";
  out += sentence(argument.doc);
  const auto& words = argument.completion.words;
  if (!words.empty() && argument.value.find('|') == std::string::npos) {
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i)
      list += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + bold(words[i]);
    out += "One of " + list + ".\n";
  }
  if (!argument.range.empty()) out += "Allowed: " + argument.range + ".\n";
  if (argument.repeatable) out += "Can be given more than once.\n";
  for (const std::string& needed : argument.needs) out += "Requires " + bold(needed) + ".\n";
  if (argument.required) out += "Required.\n";
  return out;
}

std::string usage(const Command& command) {
  std::string out = bold(command.path);
  for (const Argument& flag : command.flags) {
    if (!flag.required) continue;
    out += " " + bold(flag.names.back()) + " " + italic(flag.value) + (flag.several_values ? " ..." : "");
  }
  if (command.path == "triax") out += " " + italic("subcommand");
  out += " [" + italic("options") + "]";
  for (const Argument& argument : command.positionals) {
    const std::string value = italic(argument.value) + (argument.several_values ? " ..." : "");
    out += argument.required ? " " + value : " [" + value + "]";
  }
  return out + "\n";
}

/// The SYNOPSIS lines: one, or one for each nested subcommand.
std::string synopsis(const Command& command) {
  if (command.path == "triax" || command.subcommands.empty()) return usage(command);
  std::string out;
  for (const Command& subcommand : command.subcommands) out += (out.empty() ? "" : ".br\n") + usage(subcommand);
  return out;
}

std::string options(const Command& command) {
  std::string out;
  for (const Argument& argument : command.positionals) out += entry(argument);
  for (const Argument& flag : command.flags) out += entry(flag);
  return out;
}

/// The SUBCOMMANDS section: page names for triax itself, all flags for other commands.
std::string subcommands(const Command& command) {
  std::string out = ".SH SUBCOMMANDS\n";
  for (const Command& subcommand : command.subcommands) {
    if (command.path == "triax") {
      out += ".TP\n" + bold(subcommand.name()) + "\n" + sentence(subcommand.doc) + "See " +
             bold(page_name(subcommand.path)) + "(1).\n";
    } else {
      out += ".SS " + escape_troff(subcommand.path) + "\n" + sentence(subcommand.doc) + options(subcommand);
    }
  }
  return out;
}

/// The line of the NAME section, without the name of the program at its beginning.
std::string summary(const std::string& doc) {
  return doc.starts_with("Triax ") ? doc.substr(6) : doc;
}

std::string examples(const ManualText& text) {
  std::string out = ".SH EXAMPLES\n";
  for (const Example& example : text.examples) {
    if (*example.doc)
      out += std::string(&example == text.examples.data() ? "" : ".PP\n") + escape_troff(example.doc) + "\n";
    out += std::string(".PP\n.RS 4\n.nf\n") + escape_troff(example.command) + "\n.fi\n.RE\n";
  }
  return out;
}

std::string see_also(const Command& command) {
  std::string out = ".SH SEE ALSO\n", separator;
  for (const ManualText& page : manual_texts()) {
    if (page.path == command.path) continue;
    out += separator + ".BR " + escape_troff(page_name(page.path)) + " (1)";
    separator = ",\n";
  }
  return out + "\n";
}

} // namespace

std::string page_name(const std::string& path) {
  std::string out = path;
  std::ranges::replace(out, ' ', '-');
  return out;
}

std::string manual_page(const Command& command, const ManualText& text, const ManualVersion& version) {
  const std::string name = page_name(command.path);
  std::string out = "." + std::string("\\\" SPDX-License-Identifier: Apache-2.0\n");
  out += ".TH " + escape_troff(upper(name)) + " 1 " + version.date + " \"triax " + version.version + "\" \"Triax\"\n";
  out += ".nh\n.ad l\n.SH NAME\n" + escape_troff(name) + " \\- " + escape_troff(summary(command.doc)) +
         "\n.SH SYNOPSIS\n" + synopsis(command);
  out += ".SH DESCRIPTION\n";
  for (const char* paragraph : text.paragraphs)
    out += (paragraph == text.paragraphs.front() ? "" : ".PP\n") + escape_troff(paragraph) + "\n";
  if (!command.subcommands.empty()) out += subcommands(command);
  if (command.path == "triax" || command.subcommands.empty()) out += ".SH OPTIONS\n" + options(command);
  return out + exit_status_section() + (command.path == "triax" ? environment_section() : "") + examples(text) +
         see_also(command);
}

} // namespace triax::reference
