extension String {
  /// Whether it can be shown as the name of a person or a device: part of it is visible, and it contains no control character or line break.
  ///
  /// An invisible name would appear in a list as nobody, or as the name before it.
  package var isDisplayName: Bool {
    !unicodeScalars.contains(where: \.isControlOrLineEnd) && unicodeScalars.contains(where: \.isVisible)
  }
}

extension Unicode.Scalar {
  fileprivate var isControlOrLineEnd: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// Whether it is visible by itself. Combining marks need a base, and characters of private use and of a future Unicode version need a font that has
  /// them. Default-ignorable characters are joiners, variation selectors, tags and fillers, some of them letters by category (Unicode 16, section 5.21).
  fileprivate var isVisible: Bool {
    switch properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .decimalNumber,
      .letterNumber, .otherNumber, .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation,
      .initialPunctuation, .finalPunctuation, .otherPunctuation, .mathSymbol, .currencySymbol, .modifierSymbol,
      .otherSymbol:
      !properties.isDefaultIgnorableCodePoint && !Self.blank.contains(self)
    case .nonspacingMark, .spacingMark, .enclosingMark, .spaceSeparator, .lineSeparator, .paragraphSeparator, .control,
      .format, .surrogate, .privateUse, .unassigned:
      false
    @unknown default: false
    }
  }

  /// Symbols without ink: BRAILLE PATTERN BLANK and MUSICAL SYMBOL NULL NOTEHEAD.
  private static let blank: Set<Unicode.Scalar> = ["\u{2800}", "\u{1D159}"]
}
