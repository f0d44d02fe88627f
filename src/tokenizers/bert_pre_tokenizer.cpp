// BertPreTokenizer and WhitespaceSplit: stages that cut at spaces, BERT's at punctuation too.
#include "tokenizers/bert_classes.h"
#include "tokenizers/pre_tokenizer.h"

namespace plimsoll::tokenizers {

/// Words end at spaces, which vanish; a punctuation character of BERT's is a word of its own.
void PreTokenizer::cut_words(size_t stage, const Piece& piece, WordSink& sink) const {
  const uint8_t* const table = bert_classes();
  const char* p = piece.text.data();
  const char* const begin = p;
  const char* const end = p + piece.text.size();
  const char* start = p;
  const unsigned ends = stages_[stage].kind == Kind::kBert ? kBertSpace | kBertPunctuation : kBertSpace;
  const bool last_stage = stage + 1 == stages_.size();
  const auto emit = [&](const char* from, const char* to) {
    if (from == to) return;
    const std::string_view word(from, static_cast<size_t>(to - from));
    if (last_stage)
      sink.word(word, piece.readable_end);
    else
      pass(stage + 1, {word, piece.first && from == begin, piece.readable_end}, sink);
  };
  while (p < end) {
    const CodePoint c = decode(p);
    const char* const after = p + c.length;
    if (const unsigned classes = table[c.value] & ends; classes != 0) {
      emit(start, p);
      if (!(classes & kBertSpace)) emit(p, after);
      start = after;
    }
    p = after;
  }
  emit(start, end);
}

}  // namespace plimsoll::tokenizers
