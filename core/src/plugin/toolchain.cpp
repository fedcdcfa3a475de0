// SPDX-License-Identifier: Apache-2.0
#include "plugin/toolchain.hpp"

#include <charconv>
#include <string>

namespace triax::plugin {

namespace {

constexpr int kLanguage = 20; // what the public headers need

struct Toolchain {
  std::string_view family; // "libstdc++", "libc++1", "c"
  std::string_view string_abi;
  bool debug = false;
  std::string_view sanitizer;
  std::string_view language;
};

Toolchain parse(std::string_view text) {
  Toolchain out;
  for (bool first = true; !text.empty(); first = false) {
    std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    if (first) {
      constexpr std::string_view kDebug = "-debug", kAbi = "-cxx11abi";
      out.debug = part.ends_with(kDebug);
      if (out.debug) part.remove_suffix(kDebug.size());
      const auto abi = part.find(kAbi);
      out.family = part.substr(0, abi);
      if (abi != std::string_view::npos) out.string_abi = part.substr(abi + kAbi.size());
    } else if (part.starts_with("sanitizer=")) {
      out.sanitizer = part.substr(part.find('=') + 1);
    } else if (part.starts_with("c++")) {
      out.language = part;
    } // the release, and parts of later versions, are not compared
  }
  return out;
}

int language_year(std::string_view language) {
  int year = 0;
  if (language.starts_with("c++")) std::from_chars(language.data() + 3, language.data() + language.size(), year);
  return year;
}

std::string sanitizer_text(std::string_view sanitizer) {
  return sanitizer == "none" ? "no sanitizer" : text("the {} sanitizer", sanitizer);
}

} // namespace

bool is_c(std::string_view toolchain) {
  return parse(toolchain).family == "c";
}

Refusals compatible(std::string_view plugin, std::string_view engine) {
  const Toolchain theirs = parse(plugin), ours = parse(engine);
  if (theirs.sanitizer != ours.sanitizer) {
    if (theirs.sanitizer.empty())
      return make_refusal(ErrorCode::kIncompatible, {}, "its toolchain text \"{}\" names no sanitizer", plugin);
    return make_refusal(ErrorCode::kIncompatible, {}, "built with {}; this triax has {}",
                        sanitizer_text(theirs.sanitizer), sanitizer_text(ours.sanitizer))
        .with_hint("build it with the same sanitizer in a separate folder, or use the triax that matches it");
  }
  if (theirs.family == "c") return {};
  if (theirs.family != ours.family) {
    return make_refusal(ErrorCode::kIncompatible, {}, "built with the C++ library {}; this triax with {}",
                        theirs.family, ours.family)
        .with_hint("build it with g++, or with clang++ -stdlib=libstdc++");
  }
  if (theirs.string_abi != ours.string_abi) {
    return make_refusal(ErrorCode::kIncompatible, {}, "built with _GLIBCXX_USE_CXX11_ABI={}; this triax with {}",
                        theirs.string_abi, ours.string_abi)
        .with_hint("define it to the same value, or not at all");
  }
  if (theirs.debug != ours.debug) {
    return make_refusal(ErrorCode::kIncompatible, {}, "built {} _GLIBCXX_DEBUG; this triax {}",
                        theirs.debug ? "with" : "without", ours.debug ? "with" : "without")
        .with_hint("it changes the layout of containers: define it for both or for neither");
  }
  if (language_year(theirs.language) < kLanguage) {
    return make_refusal(ErrorCode::kIncompatible, {}, "built as {}; a plugin needs c++{} or later", theirs.language,
                        kLanguage)
        .with_hint("use triax_add_plugin(), which sets c++{}", kLanguage);
  }
  return {};
}

} // namespace triax::plugin
