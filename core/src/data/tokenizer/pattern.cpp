// SPDX-License-Identifier: Apache-2.0
// The only file that includes PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/tokenizer/pattern.hpp"

#include <pcre2.h>

#include <array>
#include <new>

#include "data/tokenizer/pattern_syntax.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

constexpr std::size_t kJitStackStart = 32 << 10, kJitStackMost = 8 << 20;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

std::uint32_t info(const pcre2_code* code, std::uint32_t what) {
  std::uint32_t out = 0;
  pcre2_pattern_info(code, what, &out);
  return out;
}

} // namespace

struct Pattern::Impl {
  std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> code;
};

Pattern::Pattern(std::string_view pattern) : text_(pattern), impl_(std::make_unique<Impl>()) {
  const std::string translated = to_pcre2(pattern);
  int problem = 0;
  PCRE2_SIZE at = 0;
  impl_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP, &problem, &at, nullptr));
  const pcre2_code* code = impl_->code.get();
  if (!code) throw Error(triax::text("the pattern {} is not valid: {}", pattern, message_of(problem)));
  if (info(code, PCRE2_INFO_MATCHEMPTY) != 0) {
    throw Error(triax::text("the pattern {} matches the empty text", pattern), {},
                "use a tokenizer whose patterns match at least one character");
  }
  // Without just-in-time compilation on this processor, the result is the same, but slower.
  pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

struct Search::Impl {
  const Pattern* pattern;
  std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>> match;
  std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>> context;
  std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>> stack;
};

Search::Search(const Pattern& pattern) : impl_(std::make_unique<Impl>()) {
  impl_->pattern = &pattern;
  impl_->match.reset(pcre2_match_data_create(1, nullptr));
  impl_->context.reset(pcre2_match_context_create(nullptr));
  impl_->stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
  if (!impl_->match || !impl_->context) throw std::bad_alloc();
  // Null if PCRE2 has no just-in-time compiler.
  if (impl_->stack) pcre2_jit_stack_assign(impl_->context.get(), nullptr, impl_->stack.get());
}

Search::~Search() = default;
Search::Search(Search&&) noexcept = default;

bool Search::next(std::string_view text, std::size_t from, bool closed) {
  if (from == text.size()) return false;
  const std::uint32_t options = PCRE2_NO_UTF_CHECK | (closed ? 0 : PCRE2_PARTIAL_HARD);
  const int found = pcre2_match(impl_->pattern->impl_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), from, options, impl_->match.get(), impl_->context.get());
  if (found == PCRE2_ERROR_NOMATCH || found == PCRE2_ERROR_PARTIAL) return false;
  if (found < 0) {
    throw Error(triax::text("the pattern {} cannot be searched for: {}", impl_->pattern->text(), message_of(found)));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(impl_->match.get());
  begin_ = ends[0];
  end_ = ends[1];
  return true;
}

} // namespace triax::data
