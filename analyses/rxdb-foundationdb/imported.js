// Imports the storage as modules do: the file that the package names for them. It needs no fault.

const { dirname, join } = require('path')

const folder = dirname(require.resolve('rxdb/package.json'))
const { import: named } = require('rxdb/package.json').exports['./plugins/storage-foundationdb']

import(join(folder, named)).then(({ getRxStorageFoundationDB }) => {
  getRxStorageFoundationDB({ apiVersion: 720 })
  console.log('imported')
}).catch(error => {
  console.error(`${error.name}: ${error.message.split(',')[0]}`)
  process.exitCode = 1
})
