import Foundation

/// The files of the web client, which the package copies beside the program.
package enum WebFiles {
  /// The path of the folder that holds `index.html`; nil if the bundle has no resources.
  package static var folder: String? { Bundle.module.resourceURL?.path }
}
